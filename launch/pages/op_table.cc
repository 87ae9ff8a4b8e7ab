#include "launch/pages/op_table.h"

#include <fmt/ranges.h>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/signature.h"

namespace npumesh {
namespace {

std::string TraitsText(const Operator& op) {
  return fmt::format("{}", fmt::join(TraitsOf(op), ", "));
}

// A line of docs/operators.md.
std::string PageLine(const Operator& op) {
  return fmt::format("- `{}`\n", SignatureText(op.schema));
}

}  // namespace

std::vector<std::string> TraitsOf(const Operator& op) {
  std::vector<std::string> traits;
  if (op.view) traits.emplace_back("view");
  if (op.elementwise) traits.emplace_back("elementwise");
  if (op.collective) traits.emplace_back("collective");
  if (op.product) traits.emplace_back("product");
  if (!op.in_place.empty()) traits.emplace_back("in place");
  if (op.evaluate) traits.emplace_back("late");
  if (op.control_flow) traits.emplace_back("subgraphs");
  if (op.side_effect) traits.emplace_back("side effect");
  if (!op.pure) traits.emplace_back("random");
  for (const std::string_view port : op.value_inputs) {
    traits.push_back(fmt::format("needs {}", port));
  }
  return traits;
}

std::string OpsAsText(const OpRegistry& registry) {
  std::string text;
  for (const std::string_view type : registry.Types()) {
    const Operator& op = *registry.Find(type);
    const std::string traits = TraitsText(op);
    text += fmt::format("{}{}{}\n", SignatureText(op.schema), traits.empty() ? "" : "  ", traits);
  }
  return text;
}

std::string OpsAsMarkdown(const OpRegistry& registry) {
  std::vector<std::string_view> rest = registry.Types();
  std::string text = fmt::format(
      "# Operators\n\n"
      "npumesh runs {} operators. This page has the signature of each, by folder of `graph/ops`.\n"
      "Details: `npumesh ops NAME` (traits) and `npumesh ops NAME --json` (ports and attributes).\n"
      "The page is the output of `npumesh ops --markdown`; after a change write it again with\n"
      "`npumesh ops --markdown > docs/operators.md`. `tests/operator_evidence.py build/ci` prints\n"
      "with which dtypes each operator is tested, and how.\n\n"
      "Inputs come first, attributes after `;`, outputs after `->`. `name?` is an optional port,\n"
      "`name...` takes any number of tensors. `name:kind` is a required attribute, `name=value`\n"
      "has a default, and `name==value` has this value only. npumesh refuses attributes of other\n"
      "names unless they are bookkeeping ([engine.md](engine.md#attributes)).\n\n"
      "Traits: *view*: the output is the input's bytes under another shape; *elementwise*: may\n"
      "work in its input's storage; *in place*: updates an input; *collective*: meets other\n"
      "ranks; *product*: multiplies matrices; *late*: the shape of the output is known only after\n"
      "it ran; *subgraphs*: runs other graphs of the model; *side effect*: always runs; *random*:\n"
      "draws numbers; *needs x*: the shape of the output depends on the value of x.\n",
      rest.size());
  for (const OperatorFamily& family : OperatorFamilies()) {
    std::string lines;
    for (const std::string& type : family.types) {
      if (const Operator* const op = registry.Find(type)) lines += PageLine(*op);
      std::erase(rest, type);
    }
    if (lines.empty()) continue;
    text += fmt::format("\n## {}: {}\n\n{}", family.name, family.what, lines);
  }
  if (!rest.empty()) text += "\n## Operator libraries\n\n";
  for (const std::string_view type : rest) text += PageLine(*registry.Find(type));
  return text;
}

}  // namespace npumesh
