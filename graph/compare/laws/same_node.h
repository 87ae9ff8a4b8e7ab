// Whether two nodes, of the graphs of two ranks, compute the same function. Internal to
// graph/compare.
#ifndef NPUMESH_GRAPH_COMPARE_LAWS_SAME_NODE_H_
#define NPUMESH_GRAPH_COMPARE_LAWS_SAME_NODE_H_

#include "graph/ops/core/operator.h"

namespace npumesh {

// True when both values are known to mean the same; false when they differ or hold what npumesh
// does not interpret differently.
bool SameAttr(const AttrValue& a, const AttrValue& b);

// Types and the attributes of the schema agree, absent ones by their defaults.
bool SameFunction(const Node& a, const Node& b, const OpSchema& schema);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_LAWS_SAME_NODE_H_
