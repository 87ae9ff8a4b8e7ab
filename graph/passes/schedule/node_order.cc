#include "graph/passes/schedule/node_order.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <tuple>

namespace npumesh {
namespace {

// Bytes of all outputs as the file declares them; what it does not say counts nothing.
uint64_t DeclaredBytes(const Node& node) {
  uint64_t bytes = 0;
  for (const TensorDesc& desc : node.output_descs) {
    if (!desc.shape || !desc.shape->is_static()) continue;
    bytes += BytesOf(desc.dtype, static_cast<uint64_t>(desc.shape->elements())).value_or(0);
  }
  return bytes;
}

class Sorter {
 public:
  Sorter(const Graph& graph, const std::vector<bool>& needed, const OrderEdges& edges)
      : graph_(graph), needed_(needed), edges_(edges) {
    for (const std::vector<NodeId>& before : edges.predecessors) waiting_.push_back(before.size());
  }

  std::vector<NodeId> Stable() {
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (const NodeId id : Sources()) ready.push(id);
    while (!ready.empty()) {
      const NodeId id = ready.top();
      ready.pop();
      for (const NodeId next : Place(id)) ready.push(next);
    }
    return std::move(order_);
  }

  std::vector<NodeId> Breadth() {
    const std::vector<NodeId> sources = InputsFirst();
    std::deque<NodeId> ready;
    for (size_t next_source = 0; next_source < sources.size() || !ready.empty();) {
      if (ready.empty()) ready.push_back(sources[next_source++]);
      const NodeId id = ready.front();
      ready.pop_front();
      std::vector<NodeId> freed = Place(id);
      std::sort(freed.begin(), freed.end(),
                [this](NodeId a, NodeId b) { return graph_.node(a).name < graph_.node(b).name; });
      ready.insert(ready.end(), freed.begin(), freed.end());
    }
    return std::move(order_);
  }

  std::vector<NodeId> Depth() {
    std::vector<NodeId> stack = InputsFirst();
    std::reverse(stack.begin(), stack.end());
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      for (const NodeId next : Place(id)) stack.push_back(next);
    }
    return std::move(order_);
  }

  // From every node without successors.
  std::vector<NodeId> Reverse() {
    visited_.assign(needed_.size(), false);
    const auto smaller_first = [this](NodeId a, NodeId b) {
      const auto key = [this](NodeId id) {
        return std::tuple(DeclaredBytes(graph_.node(id)), std::string_view(graph_.node(id).name));
      };
      return key(a) < key(b);
    };
    for (const Node& node : graph_.nodes()) {
      const bool sink = edges_.successors[static_cast<size_t>(node.id)].empty();
      if (needed(node.id) && sink) PlaceWithPredecessors(node.id, smaller_first);
    }
    return std::move(order_);
  }

  std::vector<NodeId> StableDepth() {
    visited_.assign(needed_.size(), false);
    for (const Node& node : graph_.nodes()) {
      if (needed(node.id)) PlaceWithPredecessors(node.id, std::less<>());
    }
    return std::move(order_);
  }

 private:
  using Before = std::function<bool(NodeId, NodeId)>;

  bool needed(NodeId id) const { return needed_[static_cast<size_t>(id)]; }

  // The nodes without predecessors, in node order.
  std::vector<NodeId> Sources() const {
    std::vector<NodeId> sources;
    for (const Node& node : graph_.nodes()) {
      if (needed(node.id) && waiting_[static_cast<size_t>(node.id)] == 0) {
        sources.push_back(node.id);
      }
    }
    return sources;
  }

  std::vector<NodeId> InputsFirst() const {
    std::vector<NodeId> sources = Sources();
    std::stable_partition(sources.begin(), sources.end(),
                          [this](NodeId id) { return IsInputNode(graph_.node(id)); });
    return sources;
  }

  // Appends the node; returns those that waited for it last, in node order.
  std::vector<NodeId> Place(NodeId id) {
    order_.push_back(id);
    std::vector<NodeId> freed;
    for (const NodeId next : edges_.successors[static_cast<size_t>(id)]) {
      if (--waiting_[static_cast<size_t>(next)] == 0) freed.push_back(next);
    }
    std::sort(freed.begin(), freed.end());
    return freed;
  }

  // Post-order over the predecessors that are not placed yet, in the order of `before`.
  void PlaceWithPredecessors(NodeId start, const Before& before) {
    struct Frame {
      NodeId node;
      std::vector<NodeId> predecessors;  // the next one is at the back
    };
    std::vector<Frame> stack;
    const auto enter = [&](NodeId id) {
      if (visited_[static_cast<size_t>(id)]) return;
      visited_[static_cast<size_t>(id)] = true;
      std::vector<NodeId> predecessors = edges_.predecessors[static_cast<size_t>(id)];
      std::sort(predecessors.begin(), predecessors.end(), before);
      std::reverse(predecessors.begin(), predecessors.end());
      stack.push_back({id, std::move(predecessors)});
    };
    enter(start);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.predecessors.empty()) {
        order_.push_back(top.node);
        stack.pop_back();
      } else {
        const NodeId next = top.predecessors.back();
        top.predecessors.pop_back();
        enter(next);
      }
    }
  }

  const Graph& graph_;
  const std::vector<bool>& needed_;
  const OrderEdges& edges_;
  std::vector<size_t> waiting_;  // predecessors that are not placed
  std::vector<bool> visited_;
  std::vector<NodeId> order_;
};

}  // namespace

std::vector<NodeId> SortNodes(const Graph& graph, const std::vector<bool>& needed,
                              const OrderEdges& edges, NodeOrder choice) {
  std::vector<NodeId> stable = Sorter(graph, needed, edges).Stable();
  const auto all = static_cast<size_t>(std::count(needed.begin(), needed.end(), true));
  // The depth-first walks below would not notice a cycle.
  if (stable.size() < all) return stable;
  switch (choice) {
    case NodeOrder::kStable:
      return stable;
    case NodeOrder::kBreadth:
      return Sorter(graph, needed, edges).Breadth();
    case NodeOrder::kDepth:
      return Sorter(graph, needed, edges).Depth();
    case NodeOrder::kReverse:
      return Sorter(graph, needed, edges).Reverse();
    case NodeOrder::kStableDepth:
      return Sorter(graph, needed, edges).StableDepth();
  }
  return stable;
}

}  // namespace npumesh
