// Products of the matrix multiplication family for passes that fuse what follows them.
#ifndef NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_
#define NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_

#include <memory>
#include <vector>

#include "graph/ops/toolbox/formula/formula_chain.h"

namespace npumesh {

// The kernel of a node of the family and of what is computed from each element of its product right
// after it. `op` is the node, whose output types are inferred. The slots of the kernel are those of
// the node, then those that the tail reads. `bias_slot`: a slot after those of the node, float32
// [n] or [1, .., n], that is added too; -1: none. REQUIRES: with it, y is float32 and the node's
// own bias is not fed. `links` run over the product where it lies: their input 0 is the product,
// the others are the slots after those of `op`; `types` are theirs. REQUIRES: the last link has the
// type of the product. Errors as the product's own kernel.
Result<std::unique_ptr<Kernel>> MakeProductAndTail(const OpContext& op, int bias_slot,
                                                   const std::vector<ChainLink>& links,
                                                   const std::vector<TensorType>& types);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_
