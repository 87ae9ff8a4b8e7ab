// Which nodes have to run.
#ifndef NPUMESH_GRAPH_PASSES_ANALYSIS_REACHABILITY_H_
#define NPUMESH_GRAPH_PASSES_ANALYSIS_REACHABILITY_H_

#include <functional>
#include <vector>

#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

enum class DeadNodes { kDrop, kKeep };

// By node id: true for everything that NetOutput, a node with an effect (BoundGraph::HasEffect), or
// an in-place write into a RefData needs, through data and control edges. The rest is dead; with
// kKeep dead nodes are needed too, and what they read.
// An input whose value `known` holds for needs no producer (constants that were folded); null:
// none.
std::vector<bool> NeededNodes(const BoundGraph& graph,
                              const std::function<bool(Value)>& known = nullptr,
                              DeadNodes dead = DeadNodes::kDrop);

// By node id: true for the node and for everything that it needs so.
std::vector<bool> NodesBefore(const BoundGraph& graph, NodeId last);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_ANALYSIS_REACHABILITY_H_
