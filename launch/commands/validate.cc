// `npumesh validate`: checks a package before anything is run.
#include "graph/ops/op_library.h"
#include "launch/commands/answer.h"
#include "launch/screen/progress_line.h"
#include "launch/validate/package_check.h"
#include "launch/validate/package_json.h"

namespace npumesh {
namespace {

struct PackageOptions {
  std::string folder;
  std::vector<std::string> op_libraries;
  LibraryTrust library_trust = LibraryTrust::kOwner;
  bool as_json = false;
  bool allow_outside = false;
};

Result<Answer> Validate(const PackageOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(options.op_libraries, options.library_trust));
  ProgressLine progress(ProgressFormHere());
  const auto show = [&progress](size_t done, size_t ranks) {
    progress.Show(fmt::format("rank {} of {}", done, ranks),
                  static_cast<double>(done) / static_cast<double>(ranks));
  };
  NPUMESH_ASSIGN_OR_RETURN(const PackageReport report,
                           CheckPackage(options.folder, *registry, options.allow_outside, show));
  return Answer{report.findings.errors() == 0 ? 0 : 1, ReportText(report), ToReport(report)};
}

}  // namespace

void AddValidate(CLI::App& app, Action& action) {
  auto options = std::make_shared<PackageOptions>();
  CLI::App* command = app.add_subcommand(
      "validate", "Check a package: files, weights, graphs, groups, collectives of all ranks");
  AddFooter(*command, "an error was found (not a warning)", {"npumesh validate mp/"});
  command->add_option("folder", options->folder, "The folder of the package, ours or a foreign one")
      ->type_name("FOLDER")
      ->required();
  AddOpLibraryOption(*command, options->op_libraries, options->library_trust);
  AddAllowOutsideOption(*command, options->allow_outside);
  AddJsonFlag(*command, options->as_json);
  command->callback([options, &action] {
    action = [options] { return Tell("validate", options->as_json, Validate(*options)); };
  });
}

}  // namespace npumesh
