#include "launch/catalog/op_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/signature.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

std::string TraitsText(const Operator& op) {
  return fmt::format("{}", fmt::join(TraitsOf(op), ", "));
}

// A line of docs/operators.md.
std::string PageLine(const Operator& op) {
  return fmt::format("- `{}`\n", SignatureText(op.schema));
}

// The family's name; empty: the operator is of a library.
std::string_view FamilyOf(std::string_view type) {
  for (const OperatorFamily& family : OperatorFamilies()) {
    if (std::find(family.types.begin(), family.types.end(), type) != family.types.end()) {
      return family.name;
    }
  }
  return {};
}

std::string_view KindText(PortKind kind) {
  if (kind == PortKind::kOptional) return "optional";
  return kind == PortKind::kDynamic ? "any number of tensors" : "";
}

// Rows of two columns below a title: "inputs      x1", "            bias  optional".
std::string Rows(std::string_view title,
                 const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t widest = 0;
  for (const auto& row : rows) widest = std::max(widest, row.first.size());
  std::string text;
  for (const auto& [name, what] : rows) {
    std::string line =
        fmt::format("  {:<12}{:<{}}  {}", text.empty() ? title : "", name, widest, what);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string PortRows(std::string_view title, const std::vector<PortSpec>& ports) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const PortSpec& port : ports) rows.emplace_back(port.name, KindText(port.kind));
  return Rows(title, rows);
}

std::string AttributeRows(const std::vector<AttrSpec>& attrs) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const AttrSpec& attr : attrs) {
    rows.emplace_back(attr.name,
                      attr.fallback ? "default " + ValueText(*attr.fallback) : "required");
  }
  return Rows("attributes", rows);
}

bool HasTrait(const Operator& op, std::string_view wanted) {
  const std::vector<std::string> traits = TraitsOf(op);
  return std::any_of(traits.begin(), traits.end(), [&](std::string_view trait) {
    return trait == wanted || trait.substr(0, trait.find(' ')) == wanted;
  });
}

bool Fits(const Operator& op, const OpFilter& filter) {
  const std::string name = LowerCase(op.schema.type);
  return name.find(LowerCase(filter.like)) != name.npos &&
         (filter.trait.empty() || HasTrait(op, filter.trait));
}

// Types of the families that a filter lets through.
std::set<std::string> TypesOf(const std::string& wanted) {
  std::set<std::string> types;
  for (const OperatorFamily& family : OperatorFamilies()) {
    if (family.name == wanted) types.insert(family.types.begin(), family.types.end());
  }
  return types;
}

std::string FamilyNames() {
  std::vector<std::string_view> names;
  for (const OperatorFamily& family : OperatorFamilies()) names.push_back(family.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string TraitNames(const OpRegistry& registry) {
  std::set<std::string> names;
  for (const std::string_view type : registry.Types()) {
    for (const std::string& trait : TraitsOf(*registry.Find(type))) {
      names.insert(trait.starts_with("needs ") ? "needs" : trait);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string OpPage(const Operator& op) {
  std::string text = SignatureText(op.schema) + "\n";
  const std::string_view family = FamilyOf(op.schema.type);
  text += Rows("family", {{family.empty() ? "an operator library" : std::string(family), ""}});
  text += PortRows("inputs", op.schema.inputs) + AttributeRows(op.schema.attrs) +
          PortRows("outputs", op.schema.outputs);
  const std::string traits = TraitsText(op);
  return traits.empty() ? text : text + Rows("traits", {{traits, ""}});
}

Result<OpRegistry> Filtered(const OpRegistry& registry, const OpFilter& filter) {
  const std::set<std::string> of_family = TypesOf(filter.family);
  OpRegistry fitting;
  for (const std::string_view type : registry.Types()) {
    const Operator& op = *registry.Find(type);
    const bool belongs = filter.family.empty() || of_family.contains(std::string(type));
    if (belongs && Fits(op, filter)) fitting.Add(op);
  }
  if (!fitting.Types().empty()) return fitting;
  return Error(Code::kNotFound, "no operator fits; families are {}; traits are {}", FamilyNames(),
               TraitNames(registry));
}

std::vector<std::string> TraitsOf(const Operator& op) {
  std::vector<std::string> traits;
  if (op.view) traits.emplace_back("view");
  if (op.axes.elementwise()) traits.emplace_back("elementwise");
  if (op.collective) traits.emplace_back("collective");
  if (op.axes.product()) traits.emplace_back("product");
  if (op.loop != nullptr) traits.emplace_back("loop program");
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
      "ranks; *product*: multiplies matrices; *loop program*: can be a static kernel\n"
      "([static_kernels.md](static_kernels.md)); *late*: the shape of the output is known only "
      "after\n"
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
