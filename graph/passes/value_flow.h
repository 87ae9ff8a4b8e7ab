// Which graph inputs decide shapes by their values.
#ifndef NPUMESH_GRAPH_PASSES_VALUE_FLOW_H_
#define NPUMESH_GRAPH_PASSES_VALUE_FLOW_H_

#include <vector>

#include "graph/passes/bound_graph.h"

namespace npumesh {

// By node id: true for nodes whose value inference reads (Operator::value_inputs), directly or
// through pure operators.
std::vector<bool> NodesReadByValue(const BoundGraph& graph, const std::vector<bool>& needed);

// By node id: Data nodes whose value reaches an input that shape inference reads
// (Operator::value_inputs), directly or through pure operators, and which are host scalars
// (device_type CPU) or integers. Shape, Size and Rank stop the search: they need no values.
std::vector<bool> ShapeDecidingInputs(const BoundGraph& graph, const std::vector<bool>& needed);

// Shape, ShapeN, Size, Rank: their outputs follow from the types of their inputs.
bool IsShapeQuery(const Node& node);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_VALUE_FLOW_H_
