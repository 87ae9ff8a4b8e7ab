// Our flight records in the format of PyTorch's flight recorder, version 2.10, so that its analyser
// (torchfrtrace) and others read them.
#ifndef NPUMESH_LAUNCH_RECORD_FOREIGN_TORCH_EXPORT_H_
#define NPUMESH_LAUNCH_RECORD_FOREIGN_TORCH_EXPORT_H_

#include <string>
#include <vector>

#include "launch/record/record_join.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// What one rank's file says. Creations of groups are left out, shapes are [elements], and a call
// that was not left well is "started".
nlohmann::json TorchDump(const RankRecord& record, const Joined& joined);

// Writes <folder>/npumesh_trace_rank_<R> for every record, as pickles; makes the folder. Errors
// name the file.
Status WriteTorchDumps(const std::vector<RankRecord>& records, const Joined& joined,
                       const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_FOREIGN_TORCH_EXPORT_H_
