#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

BoundGraph::BoundGraph(const Graph& graph, const OpRegistry& registry)
    : graph_(&graph), registry_(&registry), bindings_(graph.nodes().size()) {
  for (const Node& node : graph.nodes()) {
    if (node.removed || IsFurniture(node)) continue;
    Binding& binding = bindings_[static_cast<size_t>(node.id)];
    binding.op = registry.Find(node.type);
    if (binding.op == nullptr) continue;
    Result<OpContext> context = OpContext::Bind(node, binding.op->schema);
    if (!context.ok()) {
      binding.failure = context.status();
      continue;
    }
    binding.context = std::move(context).value();
    CollectWrites(node.id);
  }
  for (const InPlaceWrite& write : writes_) {
    const bool shown = static_cast<size_t>(write.output) < node(write.node).output_descs.size();
    if (!shown) updated_unseen_.insert(StorageRoot(write.target));
  }
}

bool BoundGraph::UpdatedUnseen(Value value) const {
  return !updated_unseen_.empty() && updated_unseen_.count(StorageRoot(value)) > 0;
}

void BoundGraph::CollectWrites(NodeId id) {
  for (const InPlace& in_place : InPlacesOf(*op(id), context(id))) {
    const std::optional<Value> target = SlotValue(id, in_place.slot);
    if (target) writes_.push_back({id, in_place.output, in_place.slot, *target});
  }
}

std::optional<Value> BoundGraph::SlotValue(NodeId id, int slot) const {
  const OpContext& bound_node = context(id);
  if (slot >= bound_node.slots()) return std::nullopt;
  const int index = bound_node.input_index(slot);
  return index < 0 ? std::nullopt : node(id).inputs[static_cast<size_t>(index)];
}

std::optional<Value> BoundGraph::StorageSource(Value value) const {
  if (!bound(value.node)) return std::nullopt;
  const Operator& producer = *op(value.node);
  if (producer.view && value.port == 0) return SlotValue(value.node, 0);
  for (const InPlace& in_place : InPlacesOf(producer, context(value.node))) {
    if (in_place.output == value.port) return SlotValue(value.node, in_place.slot);
  }
  return std::nullopt;
}

Value BoundGraph::StorageRoot(Value value) const {
  while (const std::optional<Value> source = StorageSource(value)) value = *source;
  return value;
}

bool BoundGraph::HasEffect(NodeId id) const {
  const Operator* known = op(id);
  if (known != nullptr && (known->collective || known->side_effect)) return true;
  return node(id).BoolAttr("_force_skip_prune", false);
}

}  // namespace npumesh
