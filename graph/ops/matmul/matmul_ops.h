// Products of the matrix multiplication family for passes that fuse what follows them.
#ifndef NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_
#define NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_

#include <memory>
#include <optional>

#include "graph/ops/toolbox/machine/block_machine.h"

namespace npumesh {

// Slots after those of a product, whose tensors it adds itself; -1: none. REQUIRES: both are
// float32, as the product is.
struct ProductSums {
  int bias = -1;      // [n] or [1, .., n], where the node's own bias is not fed
  int residual = -1;  // like the product; added last
};

// The kernel of a node of the family and of what is computed from each element of its product right
// after it. `op` is the node, whose output types are inferred. The slots of the kernel are those of
// the node, then those that the tail reads. `tail` runs over the product and `sums` where it lies:
// its input 0 is the product, the others are the slots after those of `op`; nullopt: nothing
// follows. REQUIRES: its output has the type of the product. Errors as the product's own kernel.
Result<std::unique_ptr<Kernel>> MakeProductAndTail(const OpContext& op, const ProductSums& sums,
                                                   const std::optional<BlockProgram>& tail);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MATMUL_MATMUL_OPS_H_
