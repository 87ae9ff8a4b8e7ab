#include "graph/passes/analysis/value_flow.h"

#include <algorithm>

#include "graph/ir/graph_input.h"
#include "graph/ir/node_kind.h"

namespace npumesh {
namespace {

bool MayDecideShapes(const Node& node) {
  if (!IsData(node) || node.output_descs.empty()) return false;
  const TensorDesc desc = GraphInputDesc(node);
  return desc.device_type == "CPU" || IsInteger(desc.dtype);
}

// True when the values of the node's outputs can be computed from the values of its inputs.
bool PassesValues(const BoundGraph& graph, NodeId id) {
  const Operator* op = graph.op(id);
  return op != nullptr && graph.bound(id) && op->pure && !op->late() && !op->collective &&
         !op->side_effect && op->in_place.empty() && !op->axes.shape_query();
}

}  // namespace

bool IsShapeQuery(const BoundGraph& graph, NodeId id) {
  const Operator* const op = graph.op(id);
  return op != nullptr && op->axes.shape_query();
}

std::vector<NodeId> ProducersOfValueInputs(const BoundGraph& graph, NodeId id) {
  std::vector<NodeId> producers;
  if (!graph.bound(id)) return producers;
  const OpContext& context = graph.context(id);
  for (const std::string_view port : graph.op(id)->value_inputs) {
    const int first = context.slot(port);
    for (int slot = first; slot < first + context.count(port); ++slot) {
      if (const std::optional<Value> value = graph.SlotValue(id, slot)) {
        producers.push_back(value->node);
      }
    }
  }
  return producers;
}

std::vector<bool> NodesKnownLate(const BoundGraph& graph, const std::vector<NodeId>& order) {
  std::vector<bool> late(graph.graph().nodes().size(), true);
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    const Operator* op = graph.op(id);
    bool known = IsWeightNode(node) || IsShapeQuery(graph, id) || MayDecideShapes(node) ||
                 (op != nullptr && op->late());
    if (!known && PassesValues(graph, id)) {
      known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](const auto& input) {
        return !input || !late[static_cast<size_t>(input->node)];
      });
    }
    late[static_cast<size_t>(id)] = !known;
  }
  return late;
}

std::vector<bool> NodesReadByValue(const BoundGraph& graph, const std::vector<bool>& needed) {
  std::vector<NodeId> pending;
  for (const Node& node : graph.graph().nodes()) {
    if (!needed[static_cast<size_t>(node.id)]) continue;
    const std::vector<NodeId> producers = ProducersOfValueInputs(graph, node.id);
    pending.insert(pending.end(), producers.begin(), producers.end());
  }
  std::vector<bool> visited(needed.size(), false);
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (visited[static_cast<size_t>(id)]) continue;
    visited[static_cast<size_t>(id)] = true;
    if (!PassesValues(graph, id)) continue;
    for (const std::optional<Value>& input : graph.node(id).inputs) {
      if (input) pending.push_back(input->node);
    }
  }
  return visited;
}

std::vector<bool> ShapeDecidingInputs(const BoundGraph& graph, const std::vector<bool>& needed) {
  std::vector<bool> deciding = NodesReadByValue(graph, needed);
  for (const Node& node : graph.graph().nodes()) {
    const auto id = static_cast<size_t>(node.id);
    deciding[id] = deciding[id] && MayDecideShapes(node);
  }
  return deciding;
}

}  // namespace npumesh
