// The question that is asked before anything runs: do we know every operator of this graph?
#ifndef NPUMESH_GRAPH_PASSES_ANALYSIS_OPERATOR_CHECK_H_
#define NPUMESH_GRAPH_PASSES_ANALYSIS_OPERATOR_CHECK_H_

#include <vector>

#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

// One error with the complete list, for the nodes that are `needed` (by id):
//   - types that are not registered, or have no kernel: how many nodes, an example, similar names
//     (kUnsupported);
//   - nodes that do not fit their operator's schema (kCorrupt when there is nothing of the first
//     kind).
Status CheckOperators(const BoundGraph& graph, const std::vector<bool>& needed);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_ANALYSIS_OPERATOR_CHECK_H_
