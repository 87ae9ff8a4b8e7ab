// Evaluates nodes while a graph is compiled, with the kernels that would run them later.
#ifndef NPUMESH_GRAPH_PASSES_REWRITE_CONSTANT_FOLDING_H_
#define NPUMESH_GRAPH_PASSES_REWRITE_CONSTANT_FOLDING_H_

#include <optional>
#include <vector>

#include "graph/ir/tensor.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// Larger results are computed at run time, so that folding cannot multiply the size of a model.
inline constexpr uint64_t kMaxFoldedBytes = uint64_t{16} << 20;

// The outputs of a node whose types `context` has inferred, when they are known before it runs:
//   - Shape, ShapeN, Size and Rank: from the input types;
//   - a view of a constant: the same bytes;
//   - a pure operator with constant inputs only and at most `most` bytes of output.
// nullopt: not known. Errors are those of the operator's kernel.
Result<std::optional<std::vector<Tensor>>> FoldConstants(const Operator& op,
                                                         const OpContext& context,
                                                         uint64_t most = kMaxFoldedBytes);

// Whether the node gives the same whenever it runs with the same inputs, and does nothing else.
bool IsRepeatable(const Operator& op, const OpContext& context);

// The same bytes, 16-byte aligned, as kernels and `Tensor::as` expect; copies only if need be.
Tensor Aligned(const Tensor& tensor);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_REWRITE_CONSTANT_FOLDING_H_
