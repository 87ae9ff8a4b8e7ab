// Isolate: an operator cut out of its graph.
#include "graph/compare/replay/replay.h"
#include "graph/ir/graph_builder.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

std::vector<bool> ConstantNodes(const Graph& graph, const OpRegistry& registry) {
  std::vector<bool> constant(graph.nodes().size());
  const Result<std::vector<NodeId>> order = graph.StableOrder();
  if (!order.ok()) return constant;
  for (const NodeId id : *order) {
    const Node& node = graph.node(id);
    if (node.removed || IsInputNode(node)) continue;
    const Operator* const op = registry.Find(node.type);
    bool known = IsWeightNode(node) || (op != nullptr && op->pure && !op->collective);
    for (const std::optional<Value>& input : node.inputs) {
      if (input && !constant[static_cast<size_t>(input->node)]) known = false;
    }
    constant[static_cast<size_t>(id)] = known;
  }
  return constant;
}

Result<LoneOperator> Isolate(const Graph& graph, const Node& node,
                             const std::vector<Tensor>& inputs, const std::vector<bool>& constant) {
  GraphBuilder builder(graph.name());
  LoneOperator lone;
  std::vector<GraphBuilder::Input> ports;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i] || inputs[i].dtype() == DataType::kUndefined) continue;
    const std::string name = fmt::format("input_{}", i);
    const bool known = constant[static_cast<size_t>(node.inputs[i]->node)];
    ports.emplace_back(node.input_descs[i].name, known ? builder.Const(name, inputs[i])
                                                       : builder.Data(name, inputs[i].type()));
    if (!known) lone.data.push_back(inputs[i]);
  }
  std::vector<GraphBuilder::Attr> attrs(node.attrs.begin(), node.attrs.end());
  const auto outputs = static_cast<int>(node.output_descs.size());
  const Value result =
      builder.Op(node.type, std::move(ports), std::move(attrs), node.name, outputs);
  std::vector<Value> values;
  for (int port = 0; port < outputs; ++port) values.push_back(builder.Port(result, port));
  builder.Output(std::move(values));
  NPUMESH_ASSIGN_OR_RETURN(lone.model, builder.Build());
  return lone;
}

}  // namespace npumesh
