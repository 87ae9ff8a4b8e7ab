// Which graph inputs decide shapes by their values.
#ifndef NPUMESH_GRAPH_PASSES_ANALYSIS_VALUE_FLOW_H_
#define NPUMESH_GRAPH_PASSES_ANALYSIS_VALUE_FLOW_H_

#include <vector>

#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

// By node id: true for nodes whose value inference reads (Operator::value_inputs), directly or
// through pure operators.
std::vector<bool> NodesReadByValue(const BoundGraph& graph, const std::vector<bool>& needed);

// By node id: Data nodes whose value reaches an input that shape inference reads
// (Operator::value_inputs), directly or through pure operators, and which are host scalars
// (device_type CPU) or integers. Shape, Size and Rank stop the search: they need no values.
std::vector<bool> ShapeDecidingInputs(const BoundGraph& graph, const std::vector<bool>& needed);

// By node id: nodes whose results only running them can tell: neither constants nor shapes nor
// inputs that may decide shapes give them. Late operators are not among them; a stage ends with
// them anyway. `order` holds the nodes that run, producers first; for others the answer is true.
std::vector<bool> NodesKnownLate(const BoundGraph& graph, const std::vector<NodeId>& order);

// Producers of what inference of the node reads by value (Operator::value_inputs). Empty for nodes
// that are not bound.
std::vector<NodeId> ProducersOfValueInputs(const BoundGraph& graph, NodeId id);

// True for a node whose operator is a shape query (Axes::shape_query).
bool IsShapeQuery(const BoundGraph& graph, NodeId id);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_ANALYSIS_VALUE_FLOW_H_
