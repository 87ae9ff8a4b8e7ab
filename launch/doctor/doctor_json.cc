#include "launch/doctor/doctor_json.h"

namespace npumesh {
namespace {

using nlohmann::json;

Severity SeverityOf(Health health) {
  switch (health) {
    case Health::kGood:
      return Severity::kInfo;
    case Health::kAdvice:
      return Severity::kAdvice;
    case Health::kWrong:
      break;
  }
  return Severity::kError;
}

}  // namespace

CommandReport ToReport(const std::vector<HostReport>& reports) {
  CommandReport report;
  report.verdict = AnyWrong(reports) ? "wrong" : "good";
  report.details["hosts"] = json::array();
  for (const HostReport& host : reports) {
    report.details["hosts"].push_back(host.host);
    for (const Finding& finding : host.findings) {
      report.Add(SeverityOf(finding.verdict), finding.seen,
                 {{"host", host.host},
                  {"subject", finding.subject},
                  {"mend", finding.mend.empty() ? json() : json(finding.mend)}});
    }
  }
  return report;
}

}  // namespace npumesh
