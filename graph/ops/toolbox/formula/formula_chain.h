// Chains of element-wise operators that run through the cache together, block by block: what one
// computes the next reads from a buffer of a few KiB.
//
// Each operator computes what its own kernel would, with the same conversions and roundings, so the
// result has the same bits.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_CHAIN_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_CHAIN_H_

#include <memory>
#include <optional>
#include <vector>

#include "graph/ops/toolbox/formula/formula.h"

namespace npumesh {

// One operator of a chain. All have outputs of the chain's shape.
struct ChainLink {
  // `block` null: converts its operand into operands[0].
  BlockPlan plan;
  DataType dtype = DataType::kUndefined;  // of its output
  // By operand: the input of the chain, or -1 - i for the output of link i, an earlier one.
  std::vector<int> from;
};

// The link of a node, without `from`; nullopt for an operator that is no element-wise formula, or
// one whose blocks can fail (integer division).
std::optional<ChainLink> LinkOf(const Operator& op, const OpContext& context);

// The last link's output is the chain's, `out`. Inputs broadcast to its shape. The kernel runs on
// up to `threads` threads. With `first_in_output`, input 0 lies where the output will be, and
// KernelArgs::in begins with input 1.
std::unique_ptr<Kernel> MakeChainKernel(std::vector<ChainLink> links,
                                        const std::vector<TensorType>& inputs,
                                        const TensorType& out, int threads,
                                        bool first_in_output = false);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_CHAIN_H_
