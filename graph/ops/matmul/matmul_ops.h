// The operators of the matrix multiplication family.
#ifndef NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_
#define NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_

#include <memory>
#include <vector>

#include "graph/ops/core/check.h"
#include "graph/ops/toolbox/formula/formula_chain.h"

namespace npumesh {

// The output of an operator of the family: inputs x1, x2 and perhaps bias; the first two attributes
// say whether x1 and x2 are transposed. `eight_bits`: the operator multiplies int8 too. Objects to
// what does not fit.
TensorType MatmulType(const OpContext& op, bool eight_bits, Check& check);

// The kernel of a node of the family, whose output types are inferred. `bias_slot`: a slot after
// those of the operator, float32 [n] or [1, .., n], that is added too; -1: none. REQUIRES: with it,
// y is float32 and the operator's own bias is not fed. `y_dtype`: float32 where the product shall
// have another type than its operands.
Result<std::unique_ptr<Kernel>> MakeMatmulKernel(const OpContext& op, int bias_slot = -1,
                                                 DataType y_dtype = DataType::kUndefined);

// The kernel of a product and what is computed from each of its elements right after it. `op` is
// the product; the slots of the kernel are those of the product, then those that the tail reads.
// `bias_slot` as for MakeMatmulKernel. `links` run over the product where it lies: their input 0 is
// the product, the others are the slots after those of `op`; `types` are theirs. REQUIRES: the last
// link has the type of the product. Errors as the product's own kernel.
Result<std::unique_ptr<Kernel>> MakeProductAndTail(const OpContext& op, int bias_slot,
                                                   const std::vector<ChainLink>& links,
                                                   const std::vector<TensorType>& types);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_
