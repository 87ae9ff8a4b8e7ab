// Finding: one thing that a check has to say.
#ifndef NPUMESH_LAUNCH_REPORT_FINDING_H_
#define NPUMESH_LAUNCH_REPORT_FINDING_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace npumesh {

enum class Severity : uint8_t { kInfo, kAdvice, kWarning, kError };
std::string_view Name(Severity severity);  // "info", "advice", "warning", "error"

struct Finding {
  std::string subject;  // what was examined: "umask", or a file of a package
  Severity severity = Severity::kInfo;
  std::string text;  // what was seen, and expected
  std::string mend;  // a command, or what to change; empty when nothing is to be done or known
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_REPORT_FINDING_H_
