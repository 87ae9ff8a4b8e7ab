// What a profile says, for programs: `npumesh profile --json` (docs/json.md), and for the page.
#ifndef NPUMESH_LAUNCH_PROFILE_PROFILE_JSON_H_
#define NPUMESH_LAUNCH_PROFILE_PROFILE_JSON_H_

#include <optional>

#include "launch/profile/machine_limits.h"
#include "launch/profile/profile_compare.h"
#include "launch/profile/profile_facts.h"
#include "launch/report/command_report.h"

namespace npumesh {

// Verdict "whole" or "partial": something of the profile is missing or cannot be trusted.
CommandReport ProfileReport(const ProfileFacts& facts, const std::optional<MachineLimits>& limits);

// Verdict "compared".
CommandReport ComparedReport(const ComparedProfiles& compared);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_PROFILE_JSON_H_
