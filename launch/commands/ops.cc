// `npumesh ops`: the operators npumesh can run.
#include <cstdio>

#include "launch/commands/command.h"
#include "launch/view/op_table.h"

namespace npumesh {
namespace {

int PrintOps(bool markdown) {
  const std::string text = markdown ? OpsAsMarkdown(BuiltinOps()) : OpsAsText(BuiltinOps());
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

void AddOps(CLI::App& app, Action& action) {
  auto markdown = std::make_shared<bool>(false);
  CLI::App* ops = app.add_subcommand("ops", "List the operators npumesh can run");
  ops->footer("Example:\n  npumesh ops --markdown > docs/operators.md");
  ops->add_flag("--markdown", *markdown, "As docs/operators.md");
  ops->callback([markdown, &action] { action = [markdown] { return PrintOps(*markdown); }; });
}

}  // namespace npumesh
