// `npumesh ops`: the operators npumesh can run.
#include "graph/ops/op_library.h"

#include "launch/commands/answer.h"
#include "launch/view/op_table.h"
#include "launch/view/tables_json.h"

namespace npumesh {
namespace {

struct OpsOptions {
  std::vector<std::string> libraries;
  LibraryTrust trust = LibraryTrust::kOwner;
  bool markdown = false;
  bool as_json = false;
};

Result<Answer> ListOps(const OpsOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(options.libraries, options.trust));
  return Answer{0, options.markdown ? OpsAsMarkdown(*registry) : OpsAsText(*registry),
                OpsReport(*registry)};
}

}  // namespace

void AddOpLibraryOption(CLI::App& app, std::vector<std::string>& libraries, LibraryTrust& trust) {
  CLI::Option* library =
      app.add_option("--op-library", libraries,
                     "Shared library with operators of your own; may be given several times")
          ->type_name("FILE.so")
          ->allow_extra_args(false);
  app.add_flag_callback(
         "--allow-writable-library", [&trust] { trust = LibraryTrust::kAnyone; },
         "Load it although everybody may write it, or its folder")
      ->needs(library);
}

void AddOps(CLI::App& app, Action& action) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* ops = app.add_subcommand("ops", "List the operators npumesh can run");
  ops->footer(
      "Examples:\n"
      "  npumesh ops --markdown > docs/operators.md\n"
      "  npumesh ops --op-library ./libpolynomial_operator.so");
  CLI::Option* markdown = ops->add_flag("--markdown", options->markdown, "As docs/operators.md");
  AddJsonFlag(*ops, options->as_json)->excludes(markdown);
  AddOpLibraryOption(*ops, options->libraries, options->trust);
  ops->callback([options, &action] {
    action = [options] { return Tell("ops", options->as_json, ListOps(*options)); };
  });
}

}  // namespace npumesh
