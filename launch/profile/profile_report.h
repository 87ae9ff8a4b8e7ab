// What a profile says, or two of them beside each other: as text for people, as JSON for programs
// and the page. Layout of the tables: docs/profile.md; keys: docs/json.md.
#ifndef NPUMESH_LAUNCH_PROFILE_PROFILE_REPORT_H_
#define NPUMESH_LAUNCH_PROFILE_PROFILE_REPORT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "launch/profile/machine_limits.h"
#include "launch/profile/profile_compare.h"
#include "launch/profile/profile_facts.h"
#include "launch/report/command_report.h"

namespace npumesh {

// Verdict "whole" or "partial": something of the profile is missing or cannot be trusted.
CommandReport ProfileReport(const ProfileFacts& facts, const std::optional<MachineLimits>& limits);

// `most` is the number of operators, of types, and of steps that are shown; the lines say how many
// are not. Without `limits` nothing is compared with the machine. `columns`: of the screen, 0 in a
// pipe or a file; on a narrow one the tables have fewer and shorter columns.
std::string ProfileText(const ProfileFacts& facts, const std::optional<MachineLimits>& limits,
                        size_t most, int columns = 0);

// Verdict "same", "slower" or "faster".
CommandReport ComparedReport(const ComparedProfiles& compared);

// `most` rows of each table; A is the first profile, B the second. `columns`: as ProfileText.
std::string ComparedText(const ComparedProfiles& compared, size_t most, int columns = 0);

// What limits an operator, and the part of it that the operator reaches.
struct NearLimit {
  double part = 0;
  std::string_view of;  // "memory", "one core"
};
// Nullopt: neither its operations nor its bytes are known.
std::optional<NearLimit> NearLimitOf(const OperatorFacts& facts, const MachineLimits& limits);

// "10% of what memory allows"; empty: the operator's work is not known.
std::string LimitText(const OperatorFacts& facts, const MachineLimits& limits);

// What the clocks of the hosts leave open, one line; empty on one host.
std::string ClockText(const ProfileFacts& facts);

// The collectives that seem to end before they began, one line; empty: none does.
std::string CauseText(const CauseCheck& causes);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_PROFILE_REPORT_H_
