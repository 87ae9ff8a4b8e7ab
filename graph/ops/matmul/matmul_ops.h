// The operators of the matrix multiplication family.
#ifndef NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_
#define NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_

#include <memory>

#include "graph/ops/core/operator.h"

namespace npumesh {

// Inference of an operator of the family: inputs x1, x2 and perhaps bias; the first two attributes
// say whether x1 and x2 are transposed. `eight_bits`: the operator multiplies int8 too.
Status InferMatmul(OpContext& op, bool eight_bits = false);

// The kernel of a node of the family, whose output types are inferred. `bias_slot`: a slot after
// those of the operator, float32 [n] or [1, .., n], that is added too; -1: none. REQUIRES: with it,
// y is float32 and the operator's own bias is not fed. `y_dtype`: float32 where the product shall
// have another type than its operands.
Result<std::unique_ptr<Kernel>> MakeMatmulKernel(const OpContext& op, int bias_slot = -1,
                                                 DataType y_dtype = DataType::kUndefined);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_
