#include "launch/validate/package_json.h"

namespace npumesh {

CommandReport ToReport(const PackageReport& package) {
  CommandReport report;
  report.verdict = package.findings.errors() == 0 ? "valid" : "invalid";
  for (const PackageFinding& finding : package.findings.all()) {
    report.Add(finding.error ? Severity::kError : Severity::kWarning, finding.text,
               {{"file", finding.file}});
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
