// What the doctor found on each host: one line for each thing that it examined, and how to mend
// it.
#ifndef NPUMESH_LAUNCH_DOCTOR_HOST_REPORT_H_
#define NPUMESH_LAUNCH_DOCTOR_HOST_REPORT_H_

#include <string>
#include <vector>

#include "launch/report/finding.h"

namespace npumesh {

struct CommandReport;

// What one host's first rank found.
struct HostReport {
  std::string host;
  std::vector<Finding> findings;
};

// Findings of all hosts as text: what is wrong first, each with its remedy. Hosts that found the
// same share a line.
std::string ToText(const std::vector<HostReport>& reports);

// The same for programs: `npumesh doctor --json` (docs/json.md). Verdict "good" or "wrong"; a
// finding for each subject of each host, good ones included.
CommandReport ToReport(const std::vector<HostReport>& reports);

// True when one is an error: something will fail.
bool AnyWrong(const std::vector<HostReport>& reports);

// One line of JSON, for the way between ranks, and back. Any other text gives a report with
// one finding that says so.
std::string ToJson(const HostReport& report);
HostReport ReportFromJson(const std::string& text);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DOCTOR_HOST_REPORT_H_
