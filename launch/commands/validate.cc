// `npumesh validate`: checks a package before anything is run.
#include <cstdio>

#include "launch/commands/command.h"
#include "launch/validate/package_check.h"

namespace npumesh {

void AddValidate(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "validate", "Check a package: files, weights, graphs, groups, collectives of all ranks");
  command->footer(
      "Exit codes: 0 valid (warnings included), 1 a problem was found, 2 usage, 3 no package.\n"
      "Example:\n"
      "  npumesh validate mp/");
  command->add_option("folder", *folder, "The folder of the package, ours or a foreign one")
      ->required();
  command->callback([folder, &action] {
    action = [folder] {
      const Result<PackageReport> report = CheckPackage(*folder);
      if (!report.ok()) return Fail("validate", report.status());
      const std::string text = ReportText(*report);
      std::fwrite(text.data(), 1, text.size(), stdout);
      return report->findings.errors() == 0 ? 0 : 1;
    };
  });
}

}  // namespace npumesh
