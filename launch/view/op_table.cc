#include "launch/view/op_table.h"

#include <fmt/ranges.h>

namespace npumesh {
namespace {

// "bias?" is optional, "x..." takes any number of tensors.
std::string PortText(const PortSpec& port) {
  switch (port.kind) {
    case PortKind::kOptional:
      return fmt::format("{}?", port.name);
    case PortKind::kDynamic:
      return fmt::format("{}...", port.name);
    default:
      return std::string(port.name);
  }
}

std::string PortsText(const std::vector<PortSpec>& ports) {
  std::vector<std::string> texts;
  for (const PortSpec& port : ports) texts.push_back(PortText(port));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string ListText(const ListAttr& list) {
  switch (list.kind) {
    case ListKind::kInt:
      return fmt::format("[{}]", fmt::join(list.i, ","));
    case ListKind::kFloat:
      return fmt::format("[{}]", fmt::join(list.f, ","));
    case ListKind::kString:
      return fmt::format("[{}]", fmt::join(list.s, ","));
    case ListKind::kBool: {
      std::vector<std::string_view> texts;
      for (const bool flag : list.b) texts.push_back(flag ? "true" : "false");
      return fmt::format("[{}]", fmt::join(texts, ","));
    }
    default:
      return "[]";
  }
}

// What a required attribute must be.
std::string KindText(const AttrValue& pattern) {
  if (pattern.get<OpaqueAttr>() != nullptr) return "required";
  if (pattern.get<DataTypeAttr>() != nullptr) return "required dtype";
  const auto* list = pattern.get<ListAttr>();
  if (list == nullptr) return fmt::format("required {}", pattern.kind());
  return list->kind == ListKind::kFloat ? "required floats" : "required ints";
}

std::string AttrText(const AttrSpec& attr) {
  if (!attr.fallback) return fmt::format("{} ({})", attr.name, KindText(attr.pattern));
  return fmt::format("{}={}{}", attr.name, ValueText(*attr.fallback),
                     attr.only_fallback ? " (only)" : "");
}

std::string AttrsText(const std::vector<AttrSpec>& attrs) {
  std::vector<std::string> texts;
  for (const AttrSpec& attr : attrs) texts.push_back(AttrText(attr));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string TraitsText(const Operator& op) {
  return fmt::format("{}", fmt::join(TraitsOf(op), ", "));
}

}  // namespace

std::string ValueText(const AttrValue& value) {
  if (const auto* number = value.get<int64_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.get<float>()) return fmt::format("{:g}", *number);
  if (const auto* flag = value.get<bool>()) return *flag ? "true" : "false";
  if (const auto* text = value.get<std::string>()) return fmt::format("\"{}\"", *text);
  if (const auto* list = value.get<ListAttr>()) return ListText(*list);
  if (const auto* type = value.get<DataTypeAttr>()) {
    return std::string(Name(DataTypeFromRuntime(type->number).value_or(DataType::kUndefined)));
  }
  return std::string(value.kind());
}

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
    text += fmt::format("{} ({}) -> ({})", type, PortsText(op.schema.inputs),
                        PortsText(op.schema.outputs));
    if (!op.schema.attrs.empty()) text += fmt::format(" {{{}}}", AttrsText(op.schema.attrs));
    text += traits.empty() ? "\n" : fmt::format("  {}\n", traits);
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
      "`name?` is an optional input, `name...` takes any number of tensors. Attributes of other\n"
      "names are refused unless they are bookkeeping (engine.md, \"Attributes\"), and so is "
      "another\n"
      "value than that of `name=value (only)`. Traits: *view*: the output is the input's bytes "
      "under\n"
      "another shape; *elementwise*: may work in its input's storage; *in place*: updates an "
      "input;\n"
      "*collective*: meets other ranks; *product*: multiplies matrices; *late*: the shape of the\n"
      "output is only known after it ran; *subgraphs*: runs other graphs of the model; *needs x*:\n"
      "the shape of the output depends on the value of x.\n\n"
      "| operator | inputs | outputs | attributes | traits |\n|---|---|---|---|---|\n",
      types.size());
  for (const std::string_view type : types) {
    const Operator& op = *registry.Find(type);
    text += fmt::format("| {} | {} | {} | {} | {} |\n", type, PortsText(op.schema.inputs),
                        PortsText(op.schema.outputs), AttrsText(op.schema.attrs), TraitsText(op));
  }
  return text;
}

}  // namespace npumesh
