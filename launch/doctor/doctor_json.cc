#include "launch/doctor/doctor_json.h"

namespace npumesh {

CommandReport ToReport(const std::vector<HostReport>& reports) {
  CommandReport report;
  report.verdict = AnyWrong(reports) ? "wrong" : "good";
  report.details["hosts"] = nlohmann::json::array();
  for (const HostReport& host : reports) {
    report.details["hosts"].push_back(host.host);
    for (const Finding& finding : host.findings) {
      report.Add(
          finding.severity, finding.text,
          {{"host", host.host},
           {"subject", finding.subject},
           {"mend", finding.mend.empty() ? nlohmann::json() : nlohmann::json(finding.mend)}});
    }
  }
  return report;
}

}  // namespace npumesh
