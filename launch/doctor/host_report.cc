#include "launch/doctor/host_report.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "launch/report/command_report.h"
#include "launch/report/json_parts.h"

namespace npumesh {

using nlohmann::json;

// Any other word is an error.
NLOHMANN_JSON_SERIALIZE_ENUM(Severity, {{Severity::kError, "error"},
                                        {Severity::kWarning, "warning"},
                                        {Severity::kAdvice, "advice"},
                                        {Severity::kInfo, "info"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, subject, severity, text, mend)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostReport, host, findings)

namespace {

// The doctor's words, shorter than Name's.
std::string_view Word(Severity severity) {
  if (severity == Severity::kInfo) return "ok";
  return severity == Severity::kError ? "wrong" : Name(severity);
}

// A finding and the hosts that share it.
struct Shared {
  Finding finding;
  std::vector<std::string> hosts;
};

std::vector<Shared> Share(const std::vector<HostReport>& reports) {
  std::vector<Shared> shared;
  for (const HostReport& report : reports) {
    for (const Finding& finding : report.findings) {
      const auto same = std::find_if(shared.begin(), shared.end(), [&](const Shared& other) {
        return other.finding.subject == finding.subject && other.finding.text == finding.text &&
               other.finding.mend == finding.mend;
      });
      if (same == shared.end()) {
        shared.push_back({finding, {report.host}});
      } else {
        same->hosts.push_back(report.host);
      }
    }
  }
  return shared;
}

std::string Line(const Shared& shared, size_t hosts) {
  const Finding& finding = shared.finding;
  const std::string where =
      shared.hosts.size() == hosts ? "" : fmt::format(" ({})", fmt::join(shared.hosts, ", "));
  std::string line = fmt::format("{:<7} {:<14} {}{}\n", Word(finding.severity), finding.subject,
                                 finding.text, where);
  if (!finding.mend.empty()) line += fmt::format("{:<22} mend: {}\n", "", finding.mend);
  return line;
}

}  // namespace

std::string ToText(const std::vector<HostReport>& reports) {
  const std::vector<Shared> shared = Share(reports);
  std::string text;
  for (const Severity verdict : {Severity::kError, Severity::kAdvice, Severity::kInfo}) {
    for (const Shared& each : shared) {
      if (each.finding.severity == verdict) text += Line(each, reports.size());
    }
  }
  return text;
}

bool AnyWrong(const std::vector<HostReport>& reports) {
  return std::any_of(reports.begin(), reports.end(), [](const HostReport& report) {
    return std::any_of(report.findings.begin(), report.findings.end(),
                       [](const Finding& finding) { return finding.severity == Severity::kError; });
  });
}

std::string ToJson(const HostReport& report) {
  return json(report).dump(-1, ' ', false, json::error_handler_t::replace);
}

HostReport ReportFromJson(const std::string& text) try {
  return json::parse(text).get<HostReport>();
} catch (const json::exception&) {
  return {"?", {{"report", Severity::kError, "a rank sent a report that cannot be read", ""}}};
}

CommandReport ToReport(const std::vector<HostReport>& reports) {
  CommandReport report;
  report.verdict = AnyWrong(reports) ? "wrong" : "good";
  report.details["hosts"] = json::array();
  for (const HostReport& host : reports) {
    report.details["hosts"].push_back(host.host);
    for (const Finding& finding : host.findings) {
      report.Add(
          finding.severity, finding.text,
          {{"host", host.host}, {"subject", finding.subject}, {"mend", OrNull(finding.mend)}});
    }
  }
  return report;
}

}  // namespace npumesh
