#include "graph/ir/node_origin.h"

#include <fmt/format.h>

namespace npumesh {
namespace {

// The text up to the quote that opened it, of what follows an opening `'` or `"`.
std::string_view Quoted(std::string_view text) {
  if (text.empty() || (text[0] != '\'' && text[0] != '"')) return {};
  const size_t end = text.find(text[0], 1);
  return end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
}

std::string_view LastName(std::string_view dotted) {
  return dotted.substr(dotted.rfind('.') + 1);
}

// The innermost module: of {'key': ("L['self'].layer[0].proj", <class 'Linear'>)} it is
// `layer[0].proj (Linear)`. Empty for the model itself, and for texts of another form.
std::string InnermostModule(std::string_view stack) {
  constexpr std::string_view kPair = ": (", kSelf = "L['self']", kClass = "<class ";
  const size_t pair = stack.rfind(kPair);
  if (pair == std::string_view::npos) return "";
  std::string_view path = Quoted(stack.substr(pair + kPair.size()));
  if (path.starts_with(kSelf)) path.remove_prefix(kSelf.size());
  if (path.starts_with('.')) path.remove_prefix(1);
  const size_t kind = stack.find(kClass, pair);
  if (path.empty() || kind == std::string_view::npos) return std::string(path);
  return fmt::format("{} ({})", path, LastName(Quoted(stack.substr(kind + kClass.size()))));
}

// The FX node "add_3": what `_fx_node` says, else the part of an output's `_fx_tensor_name`
// ("add_3-aten.add.Tensor.OUTPUT.0") before the target.
std::string FxNode(const Node& node) {
  std::string name = node.StringAttr("_fx_node", "");
  if (!name.empty() || node.output_descs.empty()) return name;
  const AttrMap& attrs = node.output_descs[0].attrs;
  const auto tensor = attrs.find("_fx_tensor_name");
  const auto* text = tensor == attrs.end() ? nullptr : tensor->second.get<std::string>();
  return text == nullptr ? "" : text->substr(0, text->find('-'));
}

}  // namespace

std::string NodeOrigin(const Node& node) {
  std::string text;
  const auto say = [&text](std::string_view what) {
    if (!text.empty()) text += ", ";
    text += what;
  };
  if (const std::string name = FxNode(node); !name.empty()) {
    say(fmt::format("FX node \"{}\"", name));
  }
  if (const std::string module = InnermostModule(node.StringAttr("nn_module_stack", ""));
      !module.empty()) {
    say("module " + module);
  }
  if (const std::string line = node.StringAttr("_stack_trace", ""); !line.empty()) say(line);
  return text;
}

std::string WhoIs(std::string_view name, std::string_view type, std::string_view origin) {
  return fmt::format("node \"{}\" ({}){}{}", name, type, origin.empty() ? "" : " of ", origin);
}

std::string WhoIs(const Node& node) {
  return WhoIs(node.name, node.type, NodeOrigin(node));
}

}  // namespace npumesh
