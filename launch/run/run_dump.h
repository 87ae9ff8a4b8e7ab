// The dump of `npumesh run`: what was asked for, and what came of it.
#ifndef NPUMESH_LAUNCH_RUN_RUN_DUMP_H_
#define NPUMESH_LAUNCH_RUN_RUN_DUMP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/config/system_options.h"
#include "graph/session/tensor_dump.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// The options --dump and --dump-*.
struct DumpArguments {
  std::string mode;        // --dump: input, output, all; empty: not asked for
  std::string path = ".";  // existing folder
  std::string step;        // "0|3-5|10"; empty: every step
  std::string layer;       // operator names between blanks; empty: all
  std::string data = "tensor";
  std::string config;      // JSON of dump_config_path; empty: none
  uint64_t max_bytes = 0;  // of one rank; 0: no bound
  bool stop_on_error = false;
};

// What a run dumps. The arguments win over the configuration, and there `compiler` over the options
// of the session. Errors (kInvalidArgument) name option, value and what is accepted.
Result<TensorDumpOptions> ChooseDump(const DumpArguments& arguments, TensorDumpOptions compiler,
                                     const SystemOptions& session);

// One rank's dump in the report.
struct RankDump {
  std::string folder;  // empty: nothing was dumped
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t statistics_files = 0;
  uint64_t degraded_files = 0;  // statistics in place of tensors
  uint64_t lost_files = 0;
  std::string error;  // why they are lost
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankDump, folder, files, bytes, statistics_files, degraded_files,
                                   lost_files, error)

RankDump ToRankDump(const DumpReport& report);

// A line for each rank that dumped, the first with where it is; empty when none did.
std::string DumpLines(const std::vector<RankDump>& ranks);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_RUN_DUMP_H_
