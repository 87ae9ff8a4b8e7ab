// What one call of an operator costs, as its types say.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_STEP_COST_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_STEP_COST_H_

#include "graph/ops/core/operator.h"

namespace npumesh {

// Multiplications and additions of a product of matrices, 2 m n k for each matrix, or of a
// convolution; 0 for other operators, whose count is not stated. REQUIRES: the types of all
// operands are known and those of the graph.
double FlopsOf(const Operator& op, const OpContext& context);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_STEP_COST_H_
