// `npumesh ops`: the operators npumesh can run.
#include "graph/ops/op_library.h"

#include <cstdio>

#include "launch/commands/command.h"
#include "launch/view/op_table.h"

namespace npumesh {
namespace {

struct OpsOptions {
  std::vector<std::string> libraries;
  bool markdown = false;
};

Status PrintOps(const OpsOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(options.libraries));
  const std::string text = options.markdown ? OpsAsMarkdown(*registry) : OpsAsText(*registry);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Status();
}

}  // namespace

void AddOpLibraryOption(CLI::App& app, std::vector<std::string>& libraries) {
  app.add_option("--op-library", libraries,
                 "Shared library with operators of your own; may be given several times")
      ->type_name("FILE.so")
      ->allow_extra_args(false);
}

void AddOps(CLI::App& app, Action& action) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* ops = app.add_subcommand("ops", "List the operators npumesh can run");
  ops->footer(
      "Examples:\n"
      "  npumesh ops --markdown > docs/operators.md\n"
      "  npumesh ops --op-library ./libpolynomial_operator.so");
  ops->add_flag("--markdown", options->markdown, "As docs/operators.md");
  AddOpLibraryOption(*ops, options->libraries);
  ops->callback([options, &action] {
    action = [options] {
      const Status status = PrintOps(*options);
      return status.ok() ? 0 : Fail("ops", status);
    };
  });
}

}  // namespace npumesh
