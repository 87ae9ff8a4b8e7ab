#include "graph/passes/reachability.h"

namespace npumesh {
namespace {

std::vector<NodeId> Roots(const BoundGraph& graph) {
  std::vector<NodeId> roots;
  for (const Node& node : graph.graph().nodes()) {
    if (node.removed) continue;
    if (node.type == "NetOutput" || graph.HasEffect(node.id)) roots.push_back(node.id);
  }
  for (const InPlaceWrite& write : graph.writes()) {
    const Value root = graph.StorageRoot(write.target);
    if (graph.node(root.node).type == "RefData") roots.push_back(write.node);
  }
  return roots;
}

}  // namespace

std::vector<bool> NeededNodes(const BoundGraph& graph, const std::function<bool(Value)>& known) {
  std::vector<bool> needed(graph.graph().nodes().size(), false);
  std::vector<NodeId> pending = Roots(graph);
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

}  // namespace npumesh
