// BoundGraph: a graph seen through the operator registry. What every pass reads.
//
// Some types are no operators but the graph's own furniture (inputs, constants, the sink); the
// engine handles them and the registry is not asked for them.
//
// Thread-safety: const members may be called from several threads.
#ifndef NPUMESH_GRAPH_PASSES_ANALYSIS_BOUND_GRAPH_H_
#define NPUMESH_GRAPH_PASSES_ANALYSIS_BOUND_GRAPH_H_

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/node_kind.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// Output `output` of `node` overwrites the storage of `target`, one of its inputs.
struct InPlaceWrite {
  NodeId node = kNoNode;
  int output = 0;
  int slot = 0;
  Value target;
};

class BoundGraph {
 public:
  // Binds every node whose type is known; what does not bind is kept as `failure`. `graph` and
  // `registry` must outlive it. REQUIRES: graph.Verify() is OK.
  BoundGraph(const Graph& graph, const OpRegistry& registry);

  const Graph& graph() const { return *graph_; }
  const OpRegistry& registry() const { return *registry_; }
  const Node& node(NodeId id) const { return graph_->node(id); }

  // The node's operator; null for furniture, unknown types and removed nodes.
  const Operator* op(NodeId id) const { return bindings_[static_cast<size_t>(id)].op; }
  // The node bound to its schema. REQUIRES: op(id) != nullptr and failure(id).ok().
  const OpContext& context(NodeId id) const { return *bindings_[static_cast<size_t>(id)].context; }
  bool bound(NodeId id) const { return bindings_[static_cast<size_t>(id)].context.has_value(); }
  // Why the node does not fit its operator's schema.
  const Status& failure(NodeId id) const { return bindings_[static_cast<size_t>(id)].failure; }

  // The value fed to a slot of a bound node; nullopt for an absent optional input.
  std::optional<Value> SlotValue(NodeId id, int slot) const;

  // The value whose bytes `value` is by a view or in-place output: one link. nullopt: none.
  std::optional<Value> StorageSource(Value value) const;
  // StorageSource followed to its end.
  Value StorageRoot(Value value) const;
  // All in-place outputs, in node order.
  const std::vector<InPlaceWrite>& writes() const { return writes_; }

  // An operator overwrites the value's storage, and no output shows it: who reads the value sees
  // other bytes than its producer left.
  bool UpdatedUnseen(Value value) const;

  // Meets other ranks or the outside world: runs even without a reader, in program order.
  bool HasEffect(NodeId id) const;

 private:
  struct Binding {
    const Operator* op = nullptr;
    std::optional<OpContext> context;
    Status failure;
  };
  void CollectWrites(NodeId id);

  const Graph* graph_;
  const OpRegistry* registry_;
  std::vector<Binding> bindings_;
  std::vector<InPlaceWrite> writes_;
  std::set<Value> updated_unseen_;  // storage roots
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_ANALYSIS_BOUND_GRAPH_H_
