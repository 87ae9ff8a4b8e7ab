// Which operators of a graph with open dimensions form static sub-graphs: parts that are the same
// for all input shapes and can be compiled once (experimental_config.static_model_ops_lower_limit).
#ifndef NPUMESH_GRAPH_PASSES_REWRITE_STATIC_SPLIT_H_
#define NPUMESH_GRAPH_PASSES_REWRITE_STATIC_SPLIT_H_

#include <cstdint>
#include <vector>

#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

// The default limit; that of GE, as far as it is known.
inline constexpr int64_t kDefaultStaticOpsLimit = 4;
// Everything is dynamic.
inline constexpr int64_t kNoStaticParts = -1;

// Operators that may be part of a static sub-graph at all, whatever their shapes: pure ones without
// an effect, a collective or subgraphs, that share no storage which a node overwrites, because
// those keep their place among all others. By node id.
std::vector<bool> MayBeStatic(const BoundGraph& graph);

// The nodes of `order` for which `is_static` (by node id) holds, as connected sub-graphs of at
// least `lower_limit` nodes each, in the order of `order`. Two nodes are connected by a value that
// one reads from the other. No path leads from a sub-graph through a node outside back into it, so
// each could run as a whole. Smaller ones are left out.
std::vector<std::vector<NodeId>> StaticSubgraphs(const BoundGraph& graph,
                                                 const std::vector<NodeId>& order,
                                                 const std::vector<bool>& is_static,
                                                 int64_t lower_limit);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_REWRITE_STATIC_SPLIT_H_
