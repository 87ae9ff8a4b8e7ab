#include "graph/session/runnable.h"

#include "graph/engine/analyse/partial_types.h"
#include "graph/ops/builtin_ops.h"
#include "graph/passes/analysis/node_error.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/rewrite/stages.h"
#include "graph/session/core_budgets.h"
#include "graph/session/prepare_model.h"

namespace npumesh {
namespace {

// A graph that runs in stages is ordered stage by stage.
Result<std::vector<NodeId>> OrderOf(const BoundGraph& bound, const std::vector<bool>& needed) {
  if (!NeedsStages(bound)) return ExecutionOrder(bound, needed);
  NPUMESH_ASSIGN_OR_RETURN(std::vector<NodeId> order, bound.graph().StableOrder());
  std::erase_if(order, [&](NodeId id) { return !needed[static_cast<size_t>(id)]; });
  return order;
}

// All nodes, so that all that the card refuses is known; the first error.
Status CheckKnown(const BoundGraph& bound, const PartialTypes& types,
                  const std::vector<NodeId>& order, NodeWatch& card) {
  Status first;
  for (const NodeId id : order) {
    if (bound.op(id) == nullptr || !bound.bound(id)) continue;
    OpContext context = bound.context(id);
    for (int slot = 0; slot < context.slots(); ++slot) {
      const std::optional<Value> value = bound.SlotValue(id, slot);
      if (!value) continue;
      context.set_in(slot, types.type(*value));
      context.set_value(slot, types.constant(*value));
    }
    const Status status = card.Check(context);
    if (first.ok()) first = AtNode(bound.node(id), status);
  }
  return first;
}

}  // namespace

Status CheckRunnable(Model model, const SessionOptions& options, GroupProvider& groups) {
  const OpRegistry& registry = options.registry != nullptr ? *options.registry : BuiltinOps();
  NPUMESH_RETURN_IF_ERROR(model.graph.Verify());
  NPUMESH_RETURN_IF_ERROR(PrepareModel(model, options, registry));
  NPUMESH_RETURN_IF_ERROR(ApplyPrecision(model, options.precision, registry, &groups));
  NPUMESH_RETURN_IF_ERROR(CheckModel(model, registry));
  for (const std::string& group : GroupsOf(model, registry)) {
    NPUMESH_RETURN_IF_ERROR(groups.MembersOf(group).status());
  }
  const BoundGraph bound(model.graph, registry);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, OrderOf(bound, NeededNodes(bound)));
  NPUMESH_ASSIGN_OR_RETURN(const PartialTypes types, PartialTypes::Of(model, bound, order, &groups,
                                                                      PartialEffort::kThorough));
  if (options.card != nullptr) {
    NPUMESH_RETURN_IF_ERROR(CheckCoreBudgets(bound, *options.card));
    NPUMESH_RETURN_IF_ERROR(CheckKnown(bound, types, order, *options.card));
  }
  return types.Contradictions();
}

Status CheckOnCard(const Model& model, const OpRegistry& registry, GroupProvider* groups,
                   NodeWatch& card) {
  const BoundGraph bound(model.graph, registry);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, OrderOf(bound, NeededNodes(bound)));
  NPUMESH_ASSIGN_OR_RETURN(const PartialTypes types,
                           PartialTypes::Of(model, bound, order, groups, PartialEffort::kQuick));
  return CheckKnown(bound, types, order, card);
}

}  // namespace npumesh
