// What the Foreach family applies to single tensors and no operator of the IR does.
#ifndef NPUMESH_GRAPH_OPS_ELEMENTWISE_FOREACH_H_
#define NPUMESH_GRAPH_OPS_ELEMENTWISE_FOREACH_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// Log2 (x), Log10 (x), RoundOff (x, mode), Quotient (x1, x2), which of integers is cut and 0 for
// x2 = 0, and Norm (x, p) -> scalar, the p-norm of all elements. Not for BuiltinOps.
void RegisterForeachElements(OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ELEMENTWISE_FOREACH_H_
