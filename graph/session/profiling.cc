#include "graph/session/profiling.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/host_name.h"
#include "runtime/base/secure_file.h"
#include "runtime/msprof/vendor_files.h"
#include "runtime/profile/clock_rounds.h"

namespace npumesh {
namespace {

int64_t RealTime() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Empty when the system does not tell.
std::string BootId() {
  const Result<std::string> id = ReadFile("/proc/sys/kernel/random/boot_id", 4096);
  return id.ok() ? id->substr(0, id->find('\n')) : "";
}

ProfileOwner OwnerOf(const World& world, const ProfilingOptions& options) {
  ProfileOwner owner;
  owner.rank = world.rank();
  owner.world_size = world.size();
  owner.node = world.node();
  owner.local_rank = world.local_rank();
  owner.process = getpid();
  owner.host = HostName();
  owner.boot_id = BootId();
  owner.start_monotonic_ns = Profiler::Now();
  owner.start_realtime_ns = RealTime();
  owner.command = options.command;
  owner.version = NPUMESH_VERSION;
  owner.training_trace = options.training_trace;
  owner.task_trace = options.task_trace;
  owner.fp_point = options.fp_point;
  owner.bp_point = options.bp_point;
  return owner;
}

// Beside the file of this rank.
Status WriteVendorFilesOf(const World& world, const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const RankProfile profile, ReadRankProfile(path));
  const std::string folder = path.substr(0, path.rfind('/'));
  return WriteVendorFiles(profile, {folder, RealTime(), world.node_of()});
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
  return WriteVendorFilesOf(world, profiler.path());
}

}  // namespace npumesh
