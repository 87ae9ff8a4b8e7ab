// What a check of a package found, for programs: `npumesh validate --json` (docs/json.md).
#ifndef NPUMESH_LAUNCH_VALIDATE_PACKAGE_JSON_H_
#define NPUMESH_LAUNCH_VALIDATE_PACKAGE_JSON_H_

#include "launch/report/command_report.h"
#include "launch/validate/package_check.h"

namespace npumesh {

// Verdict "valid" or "invalid".
CommandReport ToReport(const PackageReport& package);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VALIDATE_PACKAGE_JSON_H_
