// SlowestRank: which rank the others wait for, and what takes it so long.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_LAUNCH_PROFILE_SLOWEST_RANK_H_
#define NPUMESH_LAUNCH_PROFILE_SLOWEST_RANK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launch/profile/profile_facts.h"

namespace npumesh {

// `profiles` by rank, not empty; `calls`, `clock`, `ranks` and `steps` are theirs, the sums of
// `ranks` done.
// A rank is late to a collective by what it enters after the lower half of the members, beyond the
// bound of the clocks. It stands out (launch/ranks/standing_out.h) by its lateness in each step but
// the first; in a run of few steps in each collective; and when its lateness is at least a fiftieth
// of a rank's time.
SlowestFacts FindSlowest(const std::vector<RankProfile>& profiles, const CollectiveCalls& calls,
                         const CommonClock& clock, const std::vector<RankFacts>& ranks,
                         const std::vector<StepFacts>& steps);

// How long a rank idles in its steps before each of its operators and calls, and computes in each
// operator, by name. Of many calls the worst tenth counts as the others do.
TimesByName IdleBefore(const RankProfile& profile);
TimesByName ComputingIn(const RankProfile& profile);

// The name with the most in `mine` above the median of `others`, and how much that is. An empty
// name: none has more.
std::pair<std::string, int64_t> MostAbove(const TimesByName& mine,
                                          const std::vector<const TimesByName*>& others);

// Of several numbers; of an even count the mean of the two in the middle; 0 of none.
int64_t MedianOf(std::vector<int64_t> values);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_SLOWEST_RANK_H_
