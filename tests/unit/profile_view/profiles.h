// Profiles made by hand, for tests of what reads them.
#ifndef NPUMESH_TESTS_UNIT_PROFILE_VIEW_PROFILES_H_
#define NPUMESH_TESTS_UNIT_PROFILE_VIEW_PROFILES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/profile/profile_file.h"

namespace npumesh::testing {

// A whole profile of rank `rank`, without spans, on node 0 with the boot "boot-a".
RankProfile ProfileOf(int rank, int world_size);

// The id of a new task; `flops` and `bytes` of one call.
uint32_t AddTask(RankProfile& profile, const std::string& name, const std::string& type,
                 double flops = 0, uint64_t bytes = 0);

// The id of group "tp" of all ranks, which is made when it is not there.
uint32_t GroupOfAll(RankProfile& profile);

// An operator in the lane of computations.
Span& AddOperator(RankProfile& profile, uint32_t task, int64_t begin_ns, int64_t end_ns,
                  uint32_t step = 0);

// A member's part of call number `call` of the group of all, in the lane of communication.
Span& AddCollective(RankProfile& profile, uint32_t task, uint64_t call, int64_t begin_ns,
                    int64_t arrived_ns, int64_t end_ns, uint64_t bytes = 1000);

Span& AddStep(RankProfile& profile, uint32_t step, int64_t begin_ns, int64_t end_ns);

// A run that looks like one: `ranks` ranks, steps with operators, collectives and copies; about
// `spans` spans together. The last rank computes longest. Names hold what a page must escape.
std::vector<RankProfile> LikelyRun(int ranks, size_t spans);

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_UNIT_PROFILE_VIEW_PROFILES_H_
