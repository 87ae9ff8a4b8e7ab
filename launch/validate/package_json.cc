#include "launch/validate/package_json.h"

namespace npumesh {

CommandReport ToReport(const PackageReport& package) {
  CommandReport report;
  report.verdict = package.findings.errors() == 0 ? "valid" : "invalid";
  for (const Finding& finding : package.findings.all()) {
    report.Add(finding.severity, finding.text, {{"file", finding.subject}});
  }
  report.details = {{"ranks", package.ranks},
                    {"nodes", package.nodes},
                    {"constants", package.constants},
                    {"constant_bytes", package.constant_bytes},
                    {"collectives", package.collectives},
                    {"collectives_compared", package.matched}};
  return report;
}

}  // namespace npumesh
