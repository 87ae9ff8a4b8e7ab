// Flight records of PyTorch: what c10d's recorder (versions 2.0 to 2.10 of its format, as NCCL and
// Gloo write it), torch_npu's (2.4) and TorchComms' leave behind, as pickle or JSON. The fields are
// those of torch/csrc/distributed/c10d/FlightRecorder.hpp.
//
// In these records collectives are handed in and run later. "scheduled" is what the program has
// called, "started" what the device is in; a recorder without timing knows no "started", and the
// first call of a group that is not completed is the one that the rank is in. A call of
// `collective_seq_id` N of a process group is call N of that group. TorchComms numbers the calls of
// all groups in one row; those of a group are counted here. Messages are calls of groups of two, as
// in our own records, and counted by the reader. The parts of a coalesced call become one.
#ifndef NPUMESH_LAUNCH_RECORD_FOREIGN_TORCH_RECORD_H_
#define NPUMESH_LAUNCH_RECORD_FOREIGN_TORCH_RECORD_H_

#include <string>
#include <string_view>
#include <vector>

#include "launch/record/record_file.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// True for an object with the keys of such a record.
bool LooksLikeTorchRecord(const nlohmann::json& dump);

// The record of `rank`, which only the file's name tells; `world_size` is at least 1 + the highest
// rank that the record names. Entries that make no sense are left out and counted. kCorrupt names
// `path` and what was expected.
Result<RankRecord> TorchRecord(const nlohmann::json& dump, int rank, const std::string& path);

// Of all ranks, once they are read: one world size, and messages numbered alike at both ends where
// a ring has forgotten the first ones.
void AlignTorchRecords(std::vector<RankRecord>& records);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_FOREIGN_TORCH_RECORD_H_
