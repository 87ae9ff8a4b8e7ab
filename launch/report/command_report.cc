#include "launch/report/command_report.h"

#include <array>
#include <utility>

#include "runtime/base/text/json_text.h"

namespace npumesh {

using nlohmann::json;

std::string_view Name(Severity severity) {
  constexpr std::array<std::string_view, 4> kNames = {"info", "advice", "warning", "error"};
  return kNames[static_cast<size_t>(severity)];
}

void CommandReport::Add(Severity severity, std::string_view text, json place) {
  place["severity"] = Name(severity);
  place["text"] = text;
  findings.push_back(std::move(place));
}

std::string ToText(const CommandReport& report, std::string_view command, int exit_code) {
  json object = report.details;
  object["command"] = command;
  object["verdict"] = report.verdict;
  object["exit_code"] = exit_code;
  object["error"] = nullptr;
  object["findings"] = report.findings;
  return JsonText(object);
}

std::string ErrorText(std::string_view command, const Status& status) {
  return JsonText({{"command", command},
                   {"verdict", "error"},
                   {"exit_code", ExitCode(status)},
                   {"error", status.message()},
                   {"findings", json::array()}});
}

}  // namespace npumesh
