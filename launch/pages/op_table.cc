#include "launch/pages/op_table.h"

#include <fmt/ranges.h>

#include "graph/ops/core/signature.h"

namespace npumesh {
namespace {

std::string TraitsText(const Operator& op) {
  return fmt::format("{}", fmt::join(TraitsOf(op), ", "));
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
  const std::vector<std::string_view> types = registry.Types();
  std::string text = fmt::format(
      "# Operators\n\n"
      "The {} operators that npumesh runs, as `npumesh ops --markdown` prints them; the page in "
      "docs/\n"
      "goes on with the dtypes of each, what it is tested against and how. After a change:\n"
      "`npumesh ops --markdown > docs/operators.md`,\n"
      "`tests/operator_evidence.py build/ci >> docs/operators.md`.\n\n"
      "A line is the signature of an operator, as `graph/ops` declares it: its inputs, after `;` "
      "its\n"
      "attributes, behind `->` its outputs. `name?` is an optional port, `name...` takes any "
      "number\n"
      "of tensors. `name:kind` is a required attribute, `name=value` one with a default, and\n"
      "`name==value` one that has this value only. Attributes of other names are refused unless "
      "they\n"
      "are bookkeeping (engine.md, \"Attributes\"). Traits: *view*: the output is the input's "
      "bytes\n"
      "under another shape; *elementwise*: may work in its input's storage; *in place*: updates "
      "an\n"
      "input; *collective*: meets other ranks; *product*: multiplies matrices; *late*: the shape "
      "of\n"
      "the output is only known after it ran; *subgraphs*: runs other graphs of the model; *needs\n"
      "x*: the shape of the output depends on the value of x.\n\n"
      "| operator | traits |\n|---|---|\n",
      types.size());
  for (const std::string_view type : types) {
    const Operator& op = *registry.Find(type);
    text += fmt::format("| `{}` | {} |\n", SignatureText(op.schema), TraitsText(op));
  }
  return text;
}

}  // namespace npumesh
