#include "launch/commands/answer.h"

namespace npumesh {

CLI::Option* AddJsonFlag(CLI::App& command, bool& as_json) {
  return command.add_flag("--json", as_json, "For programs: one JSON object (docs/json.md)");
}

std::string NextLine(const std::string& next) {
  return next.empty() ? "" : fmt::format("next: {}\n", next);
}

int Tell(std::string_view command, bool as_json, const Result<Answer>& answer) {
  if (!answer.ok()) {
    if (as_json) Print(ErrorText(command, answer.status()));
    return Fail(command.substr(0, command.find(' ')), answer.status());
  }
  if (as_json) {
    CommandReport report = answer->report;
    if (!answer->next.empty()) report.details["next"] = answer->next;
    Print(ToText(report, command, answer->exit_code));
  } else {
    Show(answer->text + NextLine(answer->next));
  }
  return answer->exit_code;
}

}  // namespace npumesh
