// The order in which the nodes of a graph run.
#ifndef NPUMESH_GRAPH_PASSES_SCHEDULE_EXECUTION_ORDER_H_
#define NPUMESH_GRAPH_PASSES_SCHEDULE_EXECUTION_ORDER_H_

#include <vector>

#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

// What decides between nodes that could both run next; the names of topology_sorting_strategy.
enum class NodeOrder {
  kStable,      // node order
  kBreadth,     // BFS: in the order they became ready, by name among those of one producer
  kDepth,       // DFS: what a node made ready comes directly after it
  kReverse,     // RDFS: what an output needs directly before it, smaller results first
  kStableDepth  // StableRDFS: what a node needs directly before it, in node order
};

// The needed nodes, producers before readers, otherwise as `choice` says, and
//   - nodes with an effect (collectives, prints, sends) in program order: node order, except that
//     what one of them needs comes before it. Ranks with equal programs so issue their collectives
//     in equal order, even where no edge orders them;
//   - readers of a value before the node that overwrites its storage, through views, unless they
//     depend on that node; NetOutput reads last;
//   - writers of one RefData in node order, unless they depend on each other.
// `overlap`: a collective stands as early as it can, and what needs its result as late as other
// work is there to be done meanwhile; everything else keeps the order of `choice`.
// Error (kInvalidArgument): two nodes must each run before the other; names both and the value.
Result<std::vector<NodeId>> ExecutionOrder(const BoundGraph& graph, const std::vector<bool>& needed,
                                           NodeOrder choice = NodeOrder::kStable,
                                           bool overlap = false);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_SCHEDULE_EXECUTION_ORDER_H_
