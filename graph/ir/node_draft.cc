#include "graph/ir/node_draft.h"

namespace npumesh {

Node MakeNode(NodeDraft draft) {
  Node node;
  node.type = std::move(draft.type);
  node.name = std::move(draft.name);
  for (auto& [port, value] : draft.inputs) {
    node.inputs.emplace_back(value);
    node.input_descs.emplace_back().name = std::move(port);
  }
  for (auto& [name, value] : draft.attrs) node.attrs.emplace(std::move(name), std::move(value));
  for (std::string& port : draft.outputs) {
    TensorDesc& output = node.output_descs.emplace_back();
    output.name = std::move(port);
    output.dtype = draft.dtype;
  }
  return node;
}

Node MakeConst(std::string name, const Tensor& value) {
  Node node = MakeNode({.type = "Const",
                        .name = std::move(name),
                        .attrs = {{"value", AttrValue::Value(value)}},
                        .dtype = value.dtype()});
  node.output_descs[0].shape = value.shape();
  return node;
}

std::string FreshName(const Graph& graph, std::string_view base) {
  std::string name(base);
  for (int i = 1; graph.Find(name) != kNoNode; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

void AddInput(const Graph& graph, std::string port, Value value, Node& node) {
  const std::vector<TensorDesc>& sources = graph.node(value.node).output_descs;
  const auto source = static_cast<size_t>(value.port);
  TensorDesc desc;
  if (source < sources.size()) desc = sources[source];
  desc.name = std::move(port);
  node.inputs.emplace_back(value);
  node.input_descs.push_back(std::move(desc));
}

}  // namespace npumesh
