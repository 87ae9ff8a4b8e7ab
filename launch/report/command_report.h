// CommandReport: what a command found, for a program: the object that `--json` prints.
//
// Every command answers with the same keys (docs/json.md), so that one reader serves all:
//   command    the words that were given: "dump compare"
//   verdict    one word of the command's table; "error" when it could not do its work
//   exit_code  what the process ends with
//   error      text, or null
//   findings   objects with "severity", "text" and what places the finding: "rank", "step",
//              "operator", "file" ...
// Further keys are the command's.
#ifndef NPUMESH_LAUNCH_REPORT_COMMAND_REPORT_H_
#define NPUMESH_LAUNCH_REPORT_COMMAND_REPORT_H_

#include <string>
#include <string_view>

#include "launch/report/finding.h"
#include "runtime/base/status.h"
#include "runtime/base/text/json.h"

namespace npumesh {

struct CommandReport {
  std::string verdict = "ok";
  nlohmann::json findings = nlohmann::json::array();
  // The command's own keys.
  nlohmann::json details = nlohmann::json::object();

  // `place` is an object with the keys that say where; empty: everywhere.
  void Add(Severity severity, std::string_view text,
           nlohmann::json place = nlohmann::json::object());
};

// The whole object, indented, with a line end. Bytes that are no UTF-8 become U+FFFD.
std::string ToText(const CommandReport& report, std::string_view command, int exit_code);

// The object of a command that could not do its work. REQUIRES: !status.ok().
std::string ErrorText(std::string_view command, const Status& status);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_REPORT_COMMAND_REPORT_H_
