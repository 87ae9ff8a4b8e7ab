#include "launch/view/collective_sizes.h"

#include "graph/engine/analyse/inference.h"
#include "graph/passes/schedule/execution_order.h"
#include "graph/session/offline_groups.h"

namespace npumesh {
namespace {

std::vector<bool> AllNodes(const Graph& graph) {
  std::vector<bool> needed;
  for (const Node& node : graph.nodes()) needed.push_back(!node.removed);
  return needed;
}

}  // namespace

std::map<NodeId, TensorType> CollectiveInputs(const Model& model, const OpRegistry& registry,
                                              const GroupTable& table, int world_size) {
  const Result<std::vector<InputSpec>> specs = InputsOf(model);
  const BoundGraph graph(model.graph, registry);
  const Result<std::vector<NodeId>> order = ExecutionOrder(graph, AllNodes(model.graph));
  if (!specs.ok() || !order.ok()) return {};
  std::map<NodeId, Inference::Input> inputs;
  for (const InputSpec& spec : *specs) {
    if (!spec.declared.shape.is_static()) return {};
    inputs[model.graph.Find(spec.name)] = {spec.declared, Tensor()};
  }
  OfflineGroups groups = OfflineGroups::BeforeWorld(table, 0, world_size);
  Inference inference(graph, {&groups, 1});
  WeightCache weights;
  if (!inference.Run(*order, inputs, weights, model.path).ok()) return {};
  std::map<NodeId, TensorType> types;
  for (const NodeId id : *order) {
    const Operator* op = graph.op(id);
    if (op == nullptr || !op->collective) continue;
    const std::vector<std::optional<Value>>& values = model.graph.node(id).inputs;
    if (!values.empty() && values[0]) types[id] = inference.type(*values[0]);
  }
  return types;
}

}  // namespace npumesh
