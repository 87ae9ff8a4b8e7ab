// Flight records made by hand, for tests of what reads them.
#ifndef NPUMESH_TESTS_UNIT_RECORD_RECORDS_H_
#define NPUMESH_TESTS_UNIT_RECORD_RECORDS_H_

#include <string>
#include <vector>

#include "launch/record/record_join.h"

namespace npumesh::testing {

constexpr uint64_t kTp = 0x7470;
constexpr uint64_t kDp = 0x6470;

// A record that ended orderly, without groups and calls, under boot "b" on host "h".
RankRecord RecordOf(int rank, int world_size);

// Adds a group row.
void AddGroup(RankRecord& record, uint64_t id, const std::string& name, const std::string& members);

// Adds a float32[64] allreduce "attn": entered at `at_ns`, arrived 10 and done 20 ns later.
RecordedCall& AddCall(RankRecord& record, uint64_t group, uint64_t call, int64_t at_ns);

// Rank enters the creation of a group, whose row it has, at `at_ns`; it takes 20 ns.
RecordedCall& AddCreation(RankRecord& record, uint64_t group, int64_t at_ns);

// The last call stays as it is after `stage` was reached; the record has no end.
void CutAt(RankRecord& record, flight::Stage stage);

// The record as the bytes of a file with room for 16 groups, 16 calls and 4 notices.
std::string ToBytes(const RankRecord& record);

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_UNIT_RECORD_RECORDS_H_
