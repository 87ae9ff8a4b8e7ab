#include "graph/passes/rewrite/static_split.h"

#include <algorithm>
#include <map>
#include <set>

namespace npumesh {
namespace {

size_t At(NodeId id) {
  return static_cast<size_t>(id);
}

// By node id: how often a path from an input has come from dynamic nodes to static ones. Static
// nodes that a dynamic one lies between have different levels.
std::vector<int> Levels(const BoundGraph& graph, const std::vector<NodeId>& order,
                        const std::vector<bool>& is_static) {
  std::vector<int> levels(is_static.size(), 0);
  for (const NodeId id : order) {
    int level = 0;
    const auto follow = [&](NodeId before) {
      if (IsInputNode(graph.node(before)) || IsWeightNode(graph.node(before))) return;
      const bool enters = is_static[At(id)] && !is_static[At(before)];
      level = std::max(level, levels[At(before)] + (enters ? 1 : 0));
    };
    for (const std::optional<Value>& input : graph.node(id).inputs) {
      if (input) follow(input->node);
    }
    for (const NodeId control : graph.node(id).controls) follow(control);
    levels[At(id)] = level;
  }
  return levels;
}

// Sets of nodes that grow together.
class Groups {
 public:
  explicit Groups(size_t nodes) : parent_(nodes) {
    for (size_t i = 0; i < nodes; ++i) parent_[i] = static_cast<NodeId>(i);
  }
  NodeId Of(NodeId id) {
    while (parent_[At(id)] != id) {
      parent_[At(id)] = parent_[At(parent_[At(id)])];
      id = parent_[At(id)];
    }
    return id;
  }
  void Join(NodeId a, NodeId b) { parent_[At(Of(a))] = Of(b); }

 private:
  std::vector<NodeId> parent_;
};

}  // namespace

std::vector<bool> MayBeStatic(const BoundGraph& graph) {
  std::set<Value> written;
  for (const InPlaceWrite& write : graph.writes()) {
    written.insert(graph.StorageRoot(write.target));
  }
  std::vector<bool> may(graph.graph().nodes().size(), false);
  for (const Node& node : graph.graph().nodes()) {
    const Operator* const op = graph.op(node.id);
    if (node.removed || op == nullptr || !graph.bound(node.id)) continue;
    const bool repeatable = op->pure && !op->late() && !op->collective && !op->side_effect &&
                            op->in_place.empty() && !node.output_descs.empty();
    may[At(node.id)] =
        repeatable && std::none_of(node.inputs.begin(), node.inputs.end(), [&](const auto& input) {
          return input && written.count(graph.StorageRoot(*input)) > 0;
        });
  }
  return may;
}

std::vector<std::vector<NodeId>> StaticSubgraphs(const BoundGraph& graph,
                                                 const std::vector<NodeId>& order,
                                                 const std::vector<bool>& is_static,
                                                 int64_t lower_limit) {
  const std::vector<int> levels = Levels(graph, order, is_static);
  Groups groups(is_static.size());
  for (const NodeId id : order) {
    if (!is_static[At(id)]) continue;
    for (const std::optional<Value>& input : graph.node(id).inputs) {
      const bool connects =
          input && is_static[At(input->node)] && levels[At(input->node)] == levels[At(id)];
      if (connects) groups.Join(id, input->node);
    }
  }
  std::map<NodeId, size_t> places;
  std::vector<std::vector<NodeId>> parts;
  for (const NodeId id : order) {
    if (!is_static[At(id)]) continue;
    const auto [place, added] = places.emplace(groups.Of(id), parts.size());
    if (added) parts.emplace_back();
    parts[place->second].push_back(id);
  }
  std::erase_if(parts, [lower_limit](const std::vector<NodeId>& part) {
    return static_cast<int64_t>(part.size()) < lower_limit;
  });
  return parts;
}

}  // namespace npumesh
