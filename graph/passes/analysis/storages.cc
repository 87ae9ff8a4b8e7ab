#include "graph/passes/analysis/storages.h"

#include <algorithm>

#include "graph/ir/node_kind.h"
#include "graph/passes/analysis/node_error.h"

namespace npumesh {

Storages::Storages(const BoundGraph& graph)
    : graph_(&graph), successors_(graph.graph().nodes().size()) {}

Result<Storages> Storages::Of(const BoundGraph& graph) {
  Storages storages(graph);
  NPUMESH_RETURN_IF_ERROR(storages.CollectWriters());
  if (storages.empty()) return storages;
  storages.AddGraphEdges();
  NPUMESH_RETURN_IF_ERROR(storages.OrderWriters());
  return storages;
}

Status Storages::CollectWriters() {
  for (const InPlaceWrite& write : graph_->writes()) {
    const Node& node = graph_->node(write.node);
    const int input = graph_->context(write.node).input_index(write.slot);
    const Value root = graph_->StorageRoot(write.target);
    Storage& storage = storages_[root];
    storage.root = root;
    for (const StorageWriter& other : storage.writers) {
      if (other.node != write.node) continue;
      const Node& owner = graph_->node(root.node);
      return AtNode(node, Error(Code::kInvalidArgument,
                                "inputs {} and {} are both overwritten, but both are the memory of "
                                "output {} of \"{}\"; put a TensorMove before one of them",
                                other.input, input, root.port, owner.name));
    }
    const bool has_port = static_cast<size_t>(write.output) < node.output_descs.size();
    storage.writers.push_back({write.node, input, {write.node, write.output}, has_port});
  }
  return Status();
}

void Storages::AddGraphEdges() {
  for (const Node& node : graph_->graph().nodes()) {
    if (node.removed) continue;
    for (const std::optional<Value>& input : node.inputs) {
      if (input) AddEdge(input->node, node.id);
    }
    for (const NodeId control : node.controls) AddEdge(control, node.id);
  }
}

// The stable order is one order for all storages that contradicts no edge, and a file that was
// written in it gives it again.
Status Storages::OrderWriters() {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_->graph().StableOrder());
  std::vector<size_t> position(successors_.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) position[static_cast<size_t>(order[i])] = i;
  for (auto& [root, storage] : storages_) {
    std::stable_sort(storage.writers.begin(), storage.writers.end(),
                     [&](const StorageWriter& a, const StorageWriter& b) {
                       return position[static_cast<size_t>(a.node)] <
                              position[static_cast<size_t>(b.node)];
                     });
    for (size_t i = 1; i < storage.writers.size(); ++i) {
      AddEdge(storage.writers[i - 1].node, storage.writers[i].node);
    }
  }
  for (auto& [root, storage] : storages_) {
    for (const StorageWriter& writer : storage.writers) {
      storage.after.push_back(From(writer.node));
      storage.after.back()[static_cast<size_t>(writer.node)] = false;
    }
  }
  return Status();
}

const Storage* Storages::Find(Value value) const {
  if (storages_.empty()) return nullptr;
  const auto found = storages_.find(graph_->StorageRoot(value));
  return found == storages_.end() ? nullptr : &found->second;
}

int Storages::Level(const Storage& storage, NodeId id) const {
  if (IsNetOutput(graph_->node(id))) return static_cast<int>(storage.writers.size());
  return static_cast<int>(std::count_if(
      storage.after.begin(), storage.after.end(),
      [id](const std::vector<bool>& after) { return after[static_cast<size_t>(id)]; }));
}

std::optional<int> Storages::SeenLevel(const Storage& storage, Value value) const {
  std::optional<int> level;
  for (std::optional<Value> at = value; at; at = graph_->StorageSource(*at)) {
    const Operator* const op = graph_->op(at->node);
    if (op == nullptr || !op->view) return level;
    level = Level(storage, at->node);
  }
  return level;
}

bool Storages::Reaches(NodeId from, NodeId to) const {
  return From(from)[static_cast<size_t>(to)];
}

void Storages::AddEdge(NodeId from, NodeId to) {
  successors_[static_cast<size_t>(from)].push_back(to);
}

std::vector<bool> Storages::From(NodeId from) const {
  std::vector<bool> reached(successors_.size(), false);
  reached[static_cast<size_t>(from)] = true;
  std::vector<NodeId> pending = {from};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    for (const NodeId next : successors_[static_cast<size_t>(id)]) {
      if (reached[static_cast<size_t>(next)]) continue;
      reached[static_cast<size_t>(next)] = true;
      pending.push_back(next);
    }
  }
  return reached;
}

}  // namespace npumesh
