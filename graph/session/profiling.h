// Profiling of one rank's sessions: from where it starts to the files that people and the vendor's
// tools read (docs/profile.md).
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_SESSION_PROFILING_H_
#define NPUMESH_GRAPH_SESSION_PROFILING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "graph/config/system_options.h"
#include "runtime/profile/profiler.h"
#include "runtime/world/world.h"

namespace npumesh {

struct ProfilingOptions {
  std::string folder;
  // profiling_options (graph/config/system_options.h).
  bool training_trace = false;
  bool task_trace = true;
  std::string fp_point;
  std::string bp_point;
  std::string command;  // what runs, for people
  // Of the files of all ranks together; what is beyond is left out and counted.
  uint64_t most_bytes = uint64_t{4} << 30;
};

// What profiling_mode and its options ask for; nullopt: nothing. The folder is that of the options,
// else "profiling" in `work_path` (ASCEND_WORK_PATH), else in the working folder. Errors as
// ParseProfilingOptions.
Result<std::optional<ProfilingOptions>> ProfilingOf(const SystemOptions& options,
                                                    const std::string& work_path);

// Collective over all ranks. From now on the rank's spans are written to the folder. Errors: as
// Profiler::Start, and as Gathering::Share between hosts.
Status StartProfiling(World& world, const ProfilingOptions& options);

// Collective over all ranks, unless `alone`: a rank that ends with an error asks no other for the
// time. Ends the file of this rank and writes the vendor's files from it. OK when nothing is
// profiled.
Status FinishProfiling(World& world, bool alone = false);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_PROFILING_H_
