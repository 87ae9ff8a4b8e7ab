// Moves work into the time that collectives take. Internal to graph/passes.
#ifndef NPUMESH_GRAPH_PASSES_SCHEDULE_OVERLAP_ORDER_H_
#define NPUMESH_GRAPH_PASSES_SCHEDULE_OVERLAP_ORDER_H_

#include <vector>

#include "graph/passes/schedule/node_order.h"

namespace npumesh {

// The nodes of `order` in another order that respects `edges`. Next is always the first of these
// that has a node ready: collectives; nodes that need no collective still under way; all others,
// which have to wait, and with which the collectives that they need end. Among equals `order`
// decides. `collectives`: by node id. REQUIRES: `order` respects `edges`.
std::vector<NodeId> OverlapOrder(const std::vector<NodeId>& order, const OrderEdges& edges,
                                 const std::vector<bool>& collectives);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_SCHEDULE_OVERLAP_ORDER_H_
