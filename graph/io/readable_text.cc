#include <fmt/ranges.h>

#include <map>

#include "graph/io/graph_text.h"
#include "graph/io/model_codec.h"
#include "graph/io/python_bytes.h"
#include "graph/ir/node_kind.h"

namespace npumesh {
namespace {

std::string ReadableList(const ListAttr& list) {
  if (!list.i.empty()) return fmt::format("[{}]", fmt::join(list.i, ", "));
  if (!list.f.empty()) return fmt::format("[{}]", fmt::join(list.f, ", "));
  std::vector<std::string> items;
  for (const std::string& item : list.s) items.push_back(PythonRepr(item));
  for (const bool item : list.b) items.emplace_back(item ? "true" : "false");
  for (const DataType item : list.dt) items.emplace_back(SerialName(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string TensorText(const TensorAttr& tensor) {
  const TensorDesc& desc = *tensor.desc;
  return fmt::format("<{}{}>", SerialName(desc.dtype), desc.shape ? desc.shape->ToString() : "[?]");
}

std::string ReadableValue(const AttrValue& value) {
  if (const auto* v = value.get<int64_t>()) return fmt::format("{}", *v);
  if (const auto* v = value.get<float>()) return fmt::format("{}", *v);
  if (const auto* v = value.get<bool>()) return *v ? "true" : "false";
  if (const auto* v = value.get<std::string>()) return PythonRepr(*v);
  if (const auto* v = value.get<ListAttr>()) return ReadableList(*v);
  if (const auto* v = value.get<TensorAttr>()) return TensorText(*v);
  if (const auto* v = value.get<DataTypeAttr>()) {
    return std::string(SerialName(DataTypeFromRuntime(v->number).value_or(DataType::kUndefined)));
  }
  return fmt::format("<{}>", value.kind());
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), order_(FileOrder(graph)) {
    for (const NodeId id : order_) {
      for (const std::optional<Value>& input : graph_.node(id).inputs) {
        if (input) ++users_[*input];
      }
    }
  }

  std::string Print() {
    text_ = fmt::format("graph(\"{}\"):\n", graph_.name());
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (IsNetOutput(node)) {
        text_ += fmt::format("  return ({})\n", fmt::join(Inputs(node, false), ", "));
      } else {
        PrintNode(node);
      }
    }
    return std::move(text_);
  }

 private:
  void PrintNode(const Node& node) {
    std::vector<std::string> attrs;
    for (const auto& [name, value] : node.attrs) {
      attrs.push_back(fmt::format("{}: {}", name, ReadableValue(value)));
    }
    const size_t ports = node.output_descs.size();
    const int number = next_++;
    text_ += fmt::format("  %{} : [#users={}] = Node[type={}] (inputs = ({}), attrs = {{{}}})\n",
                         number, ports == 1 ? users_[{node.id, 0}] : ports, node.type,
                         fmt::join(Inputs(node, true), ", "), fmt::join(attrs, ", "));
    if (ports <= 1) {
      names_[{node.id, 0}] = number;
      return;
    }
    for (int port = 0; port < static_cast<int>(ports); ++port) {
      const int element = next_++;
      names_[{node.id, port}] = element;
      text_ += fmt::format("  %{} : [#users={}] = get_element[node=%{}]({})\n", element,
                           users_[{node.id, port}], number, port);
    }
  }

  std::vector<std::string> Inputs(const Node& node, bool with_ports) const {
    std::vector<std::string> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i]) continue;
      const auto name = names_.find(*node.inputs[i]);
      const std::string value =
          name == names_.end() ? "?" : fmt::format("%{}", name->second);  // a cycle
      inputs.push_back(with_ports ? fmt::format("{}={}", node.input_descs[i].name, value) : value);
    }
    return inputs;
  }

  const Graph& graph_;
  const std::vector<NodeId> order_;
  std::map<Value, size_t> users_;
  std::map<Value, int> names_;
  int next_ = 0;
  std::string text_;
};

}  // namespace

std::string ToReadableText(const Model& model) {
  return Printer(model.graph).Print();
}

}  // namespace npumesh
