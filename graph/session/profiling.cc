#include "graph/session/profiling.h"

#include <algorithm>

#include "runtime/msprof/vendor_files.h"
#include "runtime/profile/clock_rounds.h"
#include "runtime/profile/owner.h"

namespace npumesh {
namespace {

ProfileOwner OwnerOf(const World& world, const ProfilingOptions& options) {
  ProfileOwner owner = OwnerOf(world);
  owner.command = options.command;
  owner.training_trace = options.training_trace;
  owner.task_trace = options.task_trace;
  owner.fp_point = options.fp_point;
  owner.bp_point = options.bp_point;
  return owner;
}

}  // namespace

Result<std::optional<ProfilingOptions>> ProfilingOf(const SystemOptions& options,
                                                    const std::string& work_path) {
  if (!options.profiling_mode || !options.profiling_options)
    return std::optional<ProfilingOptions>();
  NPUMESH_ASSIGN_OR_RETURN(const ProfilingChoice choice,
                           ParseProfilingOptions(*options.profiling_options));
  ProfilingOptions profiling;
  profiling.folder = !choice.output.empty() ? choice.output
                     : work_path.empty()    ? "profiling"
                                            : work_path + "/profiling";
  profiling.training_trace = choice.training_trace;
  profiling.task_trace = choice.task_trace || choice.op_trace;
  profiling.fp_point = options.fp_point.value_or(choice.fp_point);
  profiling.bp_point = options.bp_point.value_or(choice.bp_point);
  return std::optional(std::move(profiling));
}

Status StartProfiling(World& world, const ProfilingOptions& options) {
  Profiler& profiler = Profiler::Of(world);
  const uint64_t share = options.most_bytes / static_cast<uint64_t>(world.size());
  NPUMESH_RETURN_IF_ERROR(
      profiler.Start(options.folder, OwnerOf(world, options), std::max<uint64_t>(share, 1)));
  return NoteClocks(world, profiler);
}

Status FinishProfiling(World& world, bool alone) {
  Profiler& profiler = Profiler::Of(world);
  if (!profiler.on()) return Status();
  const Status clocks = alone ? Status() : NoteClocks(world, profiler);
  NPUMESH_RETURN_IF_ERROR(profiler.Stop());
  NPUMESH_RETURN_IF_ERROR(clocks);
  return WriteVendorFilesBeside(profiler.path(), world.node_of());
}

}  // namespace npumesh
