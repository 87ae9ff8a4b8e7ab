// A product of the matmul family and what is computed from each of its elements right after it.
#ifndef NPUMESH_GRAPH_OPS_MATMUL_PRODUCT_CHAIN_H_
#define NPUMESH_GRAPH_OPS_MATMUL_PRODUCT_CHAIN_H_

#include <memory>
#include <vector>

#include "graph/ops/matmul/matmul_ops.h"
#include "graph/ops/toolbox/formula/formula_chain.h"

namespace npumesh {

// `op` is the product; the slots of the kernel are those of the product, then those that the tail
// reads. `bias_slot` as for MakeMatmulKernel. `links` run over the product where it lies: their
// input 0 is the product, the others are the slots after those of `op`; `types` are theirs.
// REQUIRES: the last link has the type of the product. Errors as the product's own kernel.
Result<std::unique_ptr<Kernel>> MakeProductAndTail(const OpContext& op, int bias_slot,
                                                   const std::vector<ChainLink>& links,
                                                   const std::vector<TensorType>& types);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MATMUL_PRODUCT_CHAIN_H_
