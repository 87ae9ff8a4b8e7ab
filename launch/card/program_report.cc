#include "launch/card/program_report.h"

#include <algorithm>

#include "launch/report/junit.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using nlohmann::json;

// What every finding has; the other keys may be null.
constexpr std::string_view kTexts[] = {"severity", "text", "chip", "rule", "where", "source"};

bool IsFinding(const json& line) {
  return line.is_object() && std::ranges::all_of(kTexts, [&](std::string_view key) {
           const auto found = line.find(key);
           return found != line.end() && found->is_string();
         });
}

std::string GroupOf(const json& finding) {
  const json rank = finding.value("rank", json());
  return rank.is_number_integer() ? fmt::format("rank {}", rank.get<int64_t>()) : "program";
}

}  // namespace

Result<CommandReport> ProgramReport(std::string_view text) {
  CommandReport report;
  report.verdict = "taken";
  int number = 0;
  for (const std::string_view line : Split(text, "\n")) {
    ++number;
    if (Trimmed(line).empty()) continue;
    const json finding = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!IsFinding(finding)) return Error(Code::kCorrupt, "line {} is no finding", number);
    json& findings = report.findings;
    if (std::find(findings.begin(), findings.end(), finding) != findings.end()) continue;
    findings.push_back(finding);
    const bool refused = !finding.value("code", json()).is_null();
    if (refused) report.verdict = "refused";
    if (!refused && report.verdict == "taken") report.verdict = "wrong";
  }
  return report;
}

std::string ProgramReportText(const CommandReport& report) {
  std::string text;
  for (const json& finding : report.findings) {
    text += fmt::format("{}: {}\n", GroupOf(finding),
                        PrintableMessage(finding.at("text").get<std::string>()));
  }
  return text + fmt::format("{} findings\n", report.findings.size());
}

std::string ProgramReportJunit(const CommandReport& report, const std::string& name) {
  std::vector<JunitCase> cases;
  for (const json& finding : report.findings) {
    cases.push_back({GroupOf(finding),
                     fmt::format("card {} {}", finding.at("rule").get<std::string>(),
                                 finding.at("where").get<std::string>()),
                     JunitCase::Result::kFailed, finding.at("text").get<std::string>(), ""});
  }
  if (cases.empty()) cases.push_back({"program", "card", JunitCase::Result::kPassed, "", ""});
  return ToJunit(name, 0, cases);
}

}  // namespace npumesh
