#include "launch/doctor/host_report.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/json.h"

namespace npumesh {
namespace {

using nlohmann::json;

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
  json findings = json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back({{"subject", finding.subject},
                        {"severity", static_cast<int>(finding.severity)},
                        {"text", finding.text},
                        {"mend", finding.mend}});
  }
  const json all = {{"host", report.host}, {"findings", findings}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

HostReport ReportFromJson(const std::string& text) {
  const HostReport unreadable = {
      "?", {{"report", Severity::kError, "a rank sent a report that cannot be read", ""}}};
  const json all = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object()) return unreadable;
  HostReport report;
  const json host = all.value("host", json());
  const json findings = all.value("findings", json());
  if (!host.is_string() || !findings.is_array()) return unreadable;
  report.host = host.get<std::string>();
  for (const json& each : findings) {
    const bool whole = each.is_object() && each.contains("subject") &&
                       each["subject"].is_string() && each.contains("severity") &&
                       each["severity"].is_number_integer() && each.contains("text") &&
                       each["text"].is_string() && each.contains("mend") &&
                       each["mend"].is_string();
    if (!whole) return unreadable;
    const bool good = each["severity"].get<int>() == static_cast<int>(Severity::kInfo);
    const bool advice = each["severity"].get<int>() == static_cast<int>(Severity::kAdvice);
    report.findings.push_back({each["subject"].get<std::string>(),
                               good     ? Severity::kInfo
                               : advice ? Severity::kAdvice
                                        : Severity::kError,
                               each["text"].get<std::string>(), each["mend"].get<std::string>()});
  }
  return report;
}

}  // namespace npumesh
