// What the doctor found, for programs: `npumesh doctor --json` (docs/json.md).
#ifndef NPUMESH_LAUNCH_DOCTOR_DOCTOR_JSON_H_
#define NPUMESH_LAUNCH_DOCTOR_DOCTOR_JSON_H_

#include <vector>

#include "launch/doctor/host_report.h"
#include "launch/report/command_report.h"

namespace npumesh {

// Verdict "good" or "wrong"; a finding for each subject of each host, good ones included.
CommandReport ToReport(const std::vector<HostReport>& reports);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DOCTOR_DOCTOR_JSON_H_
