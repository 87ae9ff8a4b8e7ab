#include "tests/fuzz/engine/plain_order.h"

#include <algorithm>

#include "tests/fuzz/engine/plain_ops.h"

namespace npumesh::fuzz {
namespace {

const PlainOp* OpOf(const Node& node) {
  const auto found = PlainOps().find(node.type);
  return found == PlainOps().end() ? nullptr : &found->second;
}

bool IsView(const Graph& graph, Value value) {
  const PlainOp* op = OpOf(graph.node(value.node));
  return op != nullptr && op->view && value.port == 0;
}

// By node id: the place among all nodes when of those that may come next the first in the file
// does.
std::vector<size_t> FilePlaces(const Graph& graph, const Successors& edges) {
  std::vector<int> waiting(edges.size(), 0);
  for (const std::vector<NodeId>& behind : edges) {
    for (const NodeId node : behind) ++waiting[static_cast<size_t>(node)];
  }
  std::vector<size_t> places(edges.size(), 0);
  std::vector<bool> placed(edges.size(), false);
  for (size_t place = 1; place <= edges.size(); ++place) {
    size_t next = 0;
    const auto waits = [&](size_t id) {
      return placed[id] || waiting[id] > 0 || graph.nodes()[id].removed;
    };
    while (next < edges.size() && waits(next)) ++next;
    if (next == edges.size()) break;
    placed[next] = true;
    places[next] = place;
    for (const NodeId node : edges[next]) --waiting[static_cast<size_t>(node)];
  }
  return places;
}

}  // namespace

std::vector<bool> ReachedFrom(NodeId start, const Successors& edges) {
  std::vector<bool> reached(edges.size(), false);
  std::vector<NodeId> pending = {start};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    for (const NodeId next : edges[static_cast<size_t>(id)]) {
      if (reached[static_cast<size_t>(next)]) continue;
      reached[static_cast<size_t>(next)] = true;
      pending.push_back(next);
    }
  }
  return reached;
}

PlainOrder::PlainOrder(const Graph& graph) : graph_(graph), edges_(GraphEdges(graph)) {
  AddWriterOrder();
  Sort();
}

Successors GraphEdges(const Graph& graph) {
  Successors edges(graph.nodes().size());
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    for (const std::optional<Value>& input : node.inputs) {
      if (input) edges[static_cast<size_t>(input->node)].push_back(node.id);
    }
    for (const NodeId control : node.controls) {
      edges[static_cast<size_t>(control)].push_back(node.id);
    }
  }
  return edges;
}

// The order of the file decides where the edges of the graph do not.
void PlainOrder::AddWriterOrder() {
  for (const Node& node : graph_.nodes()) {
    const PlainOp* op = node.removed ? nullptr : OpOf(node);
    if (op != nullptr && op->writes) writers_[RootOf(*node.inputs[0])].push_back(node.id);
  }
  const std::vector<size_t> places = FilePlaces(graph_, edges_);
  for (auto& [root, writers] : writers_) {
    std::sort(writers.begin(), writers.end(), [&](NodeId a, NodeId b) {
      return places[static_cast<size_t>(a)] < places[static_cast<size_t>(b)];
    });
    for (size_t i = 1; i < writers.size(); ++i) {
      edges_[static_cast<size_t>(writers[i - 1])].push_back(writers[i]);
    }
  }
  for (const auto& [root, writers] : writers_) {
    for (const NodeId writer : writers) behind_writer_[writer] = ReachedFrom(writer, edges_);
  }
}

void PlainOrder::Sort() {
  std::vector<int> waiting(edges_.size(), 0);
  for (const std::vector<NodeId>& behind : edges_) {
    for (const NodeId node : behind) ++waiting[static_cast<size_t>(node)];
  }
  std::vector<NodeId> ready;
  for (const Node& node : graph_.nodes()) {
    if (!node.removed && waiting[static_cast<size_t>(node.id)] == 0) ready.push_back(node.id);
  }
  for (size_t next = 0; next < ready.size(); ++next) {
    for (const NodeId node : edges_[static_cast<size_t>(ready[next])]) {
      if (--waiting[static_cast<size_t>(node)] == 0) ready.push_back(node);
    }
  }
  nodes_ = std::move(ready);
}

Value PlainOrder::RootOf(Value value) const {
  while (true) {
    const Node& node = graph_.node(value.node);
    const PlainOp* op = OpOf(node);
    if (op == nullptr || !(op->view || op->writes) || value.port != 0) return value;
    value = *node.inputs[0];
  }
}

Value PlainOrder::PinOf(Value value) const {
  while (IsView(graph_, value)) {
    const Value below = *graph_.node(value.node).inputs[0];
    if (!IsView(graph_, below)) return value;
    value = below;
  }
  return value;
}

int PlainOrder::LevelOf(NodeId node, Value root) const {
  const auto found = writers_.find(root);
  if (found == writers_.end()) return 0;
  if (graph_.node(node).type == "NetOutput") return static_cast<int>(found->second.size());
  int level = 0;
  for (const NodeId writer : found->second) {
    level += behind_writer_.at(writer)[static_cast<size_t>(node)] ? 1 : 0;
  }
  return level;
}

}  // namespace npumesh::fuzz
