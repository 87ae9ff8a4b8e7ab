#include "graph/passes/analysis/reachability.h"

#include "graph/ir/node_kind.h"

namespace npumesh {
namespace {

std::vector<NodeId> Roots(const BoundGraph& graph) {
  std::vector<NodeId> roots;
  for (const Node& node : graph.graph().nodes()) {
    if (node.removed) continue;
    if (IsNetOutput(node) || graph.HasEffect(node.id)) roots.push_back(node.id);
  }
  for (const InPlaceWrite& write : graph.writes()) {
    const Value root = graph.StorageRoot(write.target);
    if (IsRefData(graph.node(root.node))) roots.push_back(write.node);
  }
  return roots;
}

// Roots and what they need, but for the producers of known values.
std::vector<bool> NeededBy(const BoundGraph& graph, std::vector<NodeId> pending,
                           const std::function<bool(Value)>& known) {
  std::vector<bool> needed(graph.graph().nodes().size(), false);
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (needed[static_cast<size_t>(id)]) continue;
    needed[static_cast<size_t>(id)] = true;
    const Node& node = graph.node(id);
    for (const std::optional<Value>& input : node.inputs) {
      if (input && !(known && known(*input))) pending.push_back(input->node);
    }
    pending.insert(pending.end(), node.controls.begin(), node.controls.end());
  }
  return needed;
}

}  // namespace

std::vector<bool> NeededNodes(const BoundGraph& graph, const std::function<bool(Value)>& known,
                              DeadNodes dead) {
  std::vector<NodeId> roots = Roots(graph);
  if (dead == DeadNodes::kKeep) {
    // A node that is not needed because its value is known stays away.
    const std::vector<bool> wanted = NeededBy(graph, roots, nullptr);
    for (const Node& node : graph.graph().nodes()) {
      if (!node.removed && !wanted[static_cast<size_t>(node.id)]) roots.push_back(node.id);
    }
  }
  return NeededBy(graph, std::move(roots), known);
}

std::vector<bool> NodesBefore(const BoundGraph& graph, NodeId last) {
  return NeededBy(graph, {last}, nullptr);
}

}  // namespace npumesh
