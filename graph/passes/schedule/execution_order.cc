#include "graph/passes/schedule/execution_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "graph/ir/node_kind.h"
#include "graph/passes/analysis/value_flow.h"
#include "graph/passes/schedule/node_order.h"
#include "graph/passes/schedule/overlap_order.h"

namespace npumesh {
namespace {

// `before` must run before `after` because `after` overwrites `value`.
struct WriteEdge {
  NodeId before = kNoNode;
  NodeId after = kNoNode;
  Value value;
};

class Orderer {
 public:
  Orderer(const BoundGraph& graph, const std::vector<bool>& needed)
      : graph_(graph), needed_(needed) {
    edges_.successors.resize(needed.size());
    edges_.predecessors.resize(needed.size());
  }

  Result<std::vector<NodeId>> Run(NodeOrder choice, bool overlap) {
    AddGraphEdges();
    CollectStorageReaders();
    AddWriteEdges();
    ChainEffects();
    std::vector<NodeId> order = SortNodes(graph_.graph(), needed_, edges_, choice);
    if (order.size() == static_cast<size_t>(std::count(needed_.begin(), needed_.end(), true))) {
      return overlap ? OverlapOrder(order, edges_, Collectives()) : order;
    }
    return Contradiction(order);
  }

 private:
  bool needed(NodeId id) const { return needed_[static_cast<size_t>(id)]; }

  // By node id.
  std::vector<bool> Collectives() const {
    std::vector<bool> collectives;
    for (const Node& node : graph_.graph().nodes()) {
      const Operator* op = graph_.op(node.id);
      collectives.push_back(op != nullptr && op->collective);
    }
    return collectives;
  }

  void AddEdge(NodeId from, NodeId to) {
    edges_.successors[static_cast<size_t>(from)].push_back(to);
    edges_.predecessors[static_cast<size_t>(to)].push_back(from);
  }

  void AddGraphEdges() {
    for (const Node& node : graph_.graph().nodes()) {
      if (!needed(node.id)) continue;
      for (const std::optional<Value>& input : node.inputs) {
        if (input) AddEdge(input->node, node.id);
      }
      for (const NodeId control : node.controls) AddEdge(control, node.id);
    }
  }

  // A view is read where its readers run, and a graph output when everything has run.
  bool ReadsBytes(const Node& node) const {
    const Operator* const op = graph_.op(node.id);
    return !IsNetOutput(node) && (op == nullptr || (!op->axes.shape_query() && !op->view));
  }

  // A weight, or a view of one.
  bool IsConstant(Value value) const {
    for (std::optional<Value> at = value; at; at = graph_.StorageSource(*at)) {
      if (IsWeightNode(graph_.node(at->node))) return true;
      const Operator* const op = graph_.op(at->node);
      if (op == nullptr || !op->view) return false;
    }
    return false;
  }

  // For every storage that a node overwrites: the reads of any value that lives in it. Reads of a
  // constant are not among them, because its writer gets a copy.
  void CollectStorageReaders() {
    for (const InPlaceWrite& write : graph_.writes()) {
      if (needed(write.node)) reads_[graph_.StorageRoot(write.target)];
    }
    if (reads_.empty()) return;
    for (const Node& node : graph_.graph().nodes()) {
      if (!needed(node.id) || !ReadsBytes(node)) continue;
      for (const std::optional<Value>& input : node.inputs) {
        if (!input || IsConstant(*input)) continue;
        const auto storage = reads_.find(graph_.StorageRoot(*input));
        if (storage != reads_.end()) storage->second.push_back({node.id, *input});
      }
    }
  }

  void AddWriteEdges() {
    std::vector<WriteEdge> edges;
    for (const InPlaceWrite& write : graph_.writes()) {
      if (!needed(write.node)) continue;
      const Value root = graph_.StorageRoot(write.target);
      const std::vector<bool> later = Reachable(write.node);
      for (const Read& read : reads_[root]) {
        if (read.node == write.node || later[static_cast<size_t>(read.node)]) continue;
        if (YieldsTo(read, write, root)) edges.push_back({read.node, write.node, read.value});
      }
    }
    // Only now, so that "depends on" means the edges of the graph.
    for (const WriteEdge& edge : edges) AddEdge(edge.before, edge.after);
    write_edges_ = std::move(edges);
  }

  struct Read {
    NodeId node;
    Value value;
  };

  // Writers of the same RefData keep node order instead of waiting for each other.
  bool YieldsTo(const Read& read, const InPlaceWrite& write, Value root) const {
    if (!IsRefData(graph_.node(root.node))) return true;
    const bool writes_too =
        std::any_of(graph_.writes().begin(), graph_.writes().end(), [&](const InPlaceWrite& other) {
          return other.node == read.node && graph_.StorageRoot(other.target) == root;
        });
    return !writes_too || read.node < write.node;
  }

  // Nodes with an effect, one after the other. Walked so that the chain never contradicts an edge.
  void ChainEffects() {
    std::vector<NodeId> effects;
    std::vector<bool> visited(needed_.size(), false);
    for (const Node& node : graph_.graph().nodes()) {
      if (needed(node.id) && graph_.HasEffect(node.id)) VisitBefore(node.id, visited, effects);
    }
    for (size_t i = 1; i < effects.size(); ++i) AddEdge(effects[i - 1], effects[i]);
  }

  // Post-order over predecessors in ascending node order; appends the nodes with an effect.
  void VisitBefore(NodeId start, std::vector<bool>& visited, std::vector<NodeId>& effects) {
    struct Frame {
      NodeId node;
      std::vector<NodeId> predecessors;  // descending: the next one is at the back
    };
    std::vector<Frame> stack;
    const auto enter = [&](NodeId id) {
      if (visited[static_cast<size_t>(id)]) return;
      visited[static_cast<size_t>(id)] = true;
      std::vector<NodeId> before = edges_.predecessors[static_cast<size_t>(id)];
      std::sort(before.begin(), before.end(), std::greater<>());
      stack.push_back({id, std::move(before)});
    };
    enter(start);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (!top.predecessors.empty()) {
        const NodeId next = top.predecessors.back();
        top.predecessors.pop_back();
        enter(next);
      } else {
        if (graph_.HasEffect(top.node)) effects.push_back(top.node);
        stack.pop_back();
      }
    }
  }

  // By node id: reached from `start` over edges.
  std::vector<bool> Reachable(NodeId start) const {
    std::vector<bool> reached(needed_.size(), false);
    std::vector<NodeId> pending = {start};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      for (const NodeId next : edges_.successors[static_cast<size_t>(id)]) {
        if (reached[static_cast<size_t>(next)]) continue;
        reached[static_cast<size_t>(next)] = true;
        pending.push_back(next);
      }
    }
    return reached;
  }

  Status Contradiction(const std::vector<NodeId>& order) const {
    const std::set<NodeId> placed(order.begin(), order.end());
    for (const WriteEdge& edge : write_edges_) {
      if (placed.count(edge.before) > 0 || placed.count(edge.after) > 0) continue;
      if (!Reachable(edge.after)[static_cast<size_t>(edge.before)]) continue;
      const Node& reader = graph_.node(edge.before);
      const Node& writer = graph_.node(edge.after);
      return Error(Code::kInvalidArgument,
                   "graph \"{}\": node \"{}\" ({}) overwrites output {} of \"{}\" in place, which "
                   "node \"{}\" ({}) must read first, but other nodes need them the other way "
                   "round; put a TensorMove before the in-place operator or a control edge",
                   graph_.graph().name(), writer.name, writer.type, edge.value.port,
                   graph_.node(edge.value.node).name, reader.name, reader.type);
    }
    return Error(Code::kCorrupt, "graph \"{}\": its nodes wait for each other in a cycle",
                 graph_.graph().name());
  }

  const BoundGraph& graph_;
  const std::vector<bool>& needed_;
  OrderEdges edges_;
  std::map<Value, std::vector<Read>> reads_;  // by storage root
  std::vector<WriteEdge> write_edges_;
};

}  // namespace

Result<std::vector<NodeId>> ExecutionOrder(const BoundGraph& graph, const std::vector<bool>& needed,
                                           NodeOrder choice, bool overlap) {
  return Orderer(graph, needed).Run(choice, overlap);
}

}  // namespace npumesh
