// What the doctor found: one line for each thing it looked at, and the command that mends it.
#ifndef NPUMESH_LAUNCH_DOCTOR_FINDING_H_
#define NPUMESH_LAUNCH_DOCTOR_FINDING_H_

#include <string>
#include <vector>

namespace npumesh {

enum class Health {
  kGood,
  kAdvice,  // works, but could be better or safer
  kWrong,   // something will fail
};

struct Finding {
  std::string subject;  // "umask"
  Health verdict = Health::kGood;
  std::string seen;  // "0022: new files may be read by everybody"
  std::string mend;  // a command, or what to change; empty when there is nothing to do
};

// What one host's first rank found.
struct HostReport {
  std::string host;
  std::vector<Finding> findings;
};

// Findings of all hosts as text: what is wrong first, each with its remedy. Hosts that found the
// same share a line.
std::string ToText(const std::vector<HostReport>& reports);

// True when any verdict is kWrong.
bool AnyWrong(const std::vector<HostReport>& reports);

// One line of JSON, for the way between ranks, and back. A text that is none gives a report with
// one finding that says so.
std::string ToJson(const HostReport& report);
HostReport ReportFromJson(const std::string& text);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DOCTOR_FINDING_H_
