// The ways to bring nodes into an order. Internal to graph/passes.
#ifndef NPUMESH_GRAPH_PASSES_SCHEDULE_NODE_ORDER_H_
#define NPUMESH_GRAPH_PASSES_SCHEDULE_NODE_ORDER_H_

#include <vector>

#include "graph/ir/graph.h"
#include "graph/passes/schedule/execution_order.h"

namespace npumesh {

// Which nodes wait for which; all vectors by node id.
struct OrderEdges {
  std::vector<std::vector<NodeId>> successors;
  std::vector<std::vector<NodeId>> predecessors;
};

// The needed nodes, each after its predecessors. Fewer than all when they wait for each other in a
// cycle.
std::vector<NodeId> SortNodes(const Graph& graph, const std::vector<bool>& needed,
                              const OrderEdges& edges, NodeOrder choice);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_SCHEDULE_NODE_ORDER_H_
