// `npumesh validate`: checks a package before anything is run.
#include <cstdio>

#include "graph/ops/op_library.h"
#include "launch/commands/command.h"
#include "launch/validate/package_check.h"

namespace npumesh {
namespace {

struct PackageOptions {
  std::string folder;
  std::vector<std::string> op_libraries;
};

// 0: valid, 1: a problem was found.
Result<int> Validate(const PackageOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(options.op_libraries));
  NPUMESH_ASSIGN_OR_RETURN(const PackageReport report, CheckPackage(options.folder, *registry));
  const std::string text = ReportText(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return report.findings.errors() == 0 ? 0 : 1;
}

}  // namespace

void AddValidate(CLI::App& app, Action& action) {
  auto options = std::make_shared<PackageOptions>();
  CLI::App* command = app.add_subcommand(
      "validate", "Check a package: files, weights, graphs, groups, collectives of all ranks");
  command->footer(
      "Exit codes: 0 valid (warnings included), 1 a problem was found, 2 usage, 3 no package.\n"
      "Example:\n"
      "  npumesh validate mp/");
  command->add_option("folder", options->folder, "The folder of the package, ours or a foreign one")
      ->required();
  AddOpLibraryOption(*command, options->op_libraries);
  command->callback([options, &action] {
    action = [options] {
      const Result<int> code = Validate(*options);
      return code.ok() ? *code : Fail("validate", code.status());
    };
  });
}

}  // namespace npumesh
