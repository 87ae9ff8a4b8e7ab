// A profile as tables for people. Layout: docs/profile.md.
#ifndef NPUMESH_LAUNCH_PROFILE_PROFILE_TEXT_H_
#define NPUMESH_LAUNCH_PROFILE_PROFILE_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "launch/profile/machine_limits.h"
#include "launch/profile/profile_facts.h"

namespace npumesh {

// `most` is the number of operators, of types, and of steps that are shown; the lines say how many
// are not. Without `limits` nothing is compared with the machine. `columns`: of the screen, 0 in a
// pipe or a file; on a narrow one the tables have fewer and shorter columns.
std::string ProfileText(const ProfileFacts& facts, const std::optional<MachineLimits>& limits,
                        size_t most, int columns = 0);

// What limits an operator, and the part of it that the operator reaches.
struct NearLimit {
  double part = 0;
  std::string_view of;  // "memory", "one core"
};
// Nullopt: neither its operations nor its bytes are known.
std::optional<NearLimit> NearLimitOf(const OperatorFacts& facts, const MachineLimits& limits);

// "12 GFLOP/s are 10% of what memory allows"; empty: the operator's work is not known.
std::string LimitText(const OperatorFacts& facts, const MachineLimits& limits);

// What the clocks of the hosts leave open, one line; empty on one host.
std::string ClockText(const ProfileFacts& facts);

// The collectives that seem to end before they began, one line; empty: none does.
std::string CauseText(const CauseCheck& causes);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_PROFILE_TEXT_H_
