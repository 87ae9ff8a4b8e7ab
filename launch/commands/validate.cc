// `npumesh validate`: checks a package before anything is run.
#include "graph/ops/op_library.h"
#include "launch/commands/answer.h"
#include "launch/screen/progress_line.h"
#include "launch/validate/package_check.h"

namespace npumesh {
namespace {

struct PackageOptions {
  std::string folder;
  std::vector<std::string> op_libraries;
  LibraryTrust library_trust = LibraryTrust::kOwner;
  bool as_json = false;
  bool allow_outside = false;
  bool strict = false;
};

std::string RunOf(const std::string& folder, size_t ranks) {
  return ranks > 1 ? fmt::format("npumesh launch -n {} -- run {}", ranks, folder)
                   : fmt::format("npumesh run {}", folder);
}

Result<Answer> Validate(const PackageOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(options.op_libraries, options.library_trust));
  ProgressLine progress(ProgressFormHere());
  const auto show = [&progress](std::string_view what, size_t done, size_t total) {
    progress.Show(fmt::format("{} {} of {}", what, done, total),
                  static_cast<double>(done) / static_cast<double>(total));
  };
  NPUMESH_ASSIGN_OR_RETURN(const PackageReport report,
                           CheckPackage(options.folder, *registry, options.allow_outside, show));
  const Findings& findings = report.findings;
  const bool wrong = findings.errors() > 0 || (options.strict && findings.warnings() > 0);
  return Answer{wrong ? 1 : 0, ReportText(report), ToReport(report),
                wrong ? "" : RunOf(options.folder, report.ranks)};
}

}  // namespace

void AddValidate(CLI::App& app, Action& action) {
  auto options = std::make_shared<PackageOptions>();
  CLI::App* command = app.add_subcommand(
      "validate", "Check a package: files, weights, graphs, groups, collectives of all ranks");
  AddFooter(*command, "an error was found; with --strict also a warning",
            {"npumesh validate mp/", "npumesh validate mp/ --strict --json"});
  command->add_option("folder", options->folder, "The folder of the package, ours or a foreign one")
      ->type_name("FOLDER")
      ->required();
  AddOpLibraryOption(*command, options->op_libraries, options->library_trust);
  AddAllowOutsideOption(*command, options->allow_outside);
  command->add_flag("--strict", options->strict, "End with 1 for a warning, too");
  AddJsonFlag(*command, options->as_json);
  command->callback([options, &action] {
    action = [options] { return Tell("validate", options->as_json, Validate(*options)); };
  });
}

}  // namespace npumesh
