// Which subgraph an If or a Case runs, and those for which that is known before anything runs.
#ifndef NPUMESH_GRAPH_PASSES_REWRITE_BRANCHES_H_
#define NPUMESH_GRAPH_PASSES_REWRITE_BRANCHES_H_

#include <cstddef>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/op_registry.h"
#include "runtime/base/status.h"

namespace npumesh {

// What an If or While takes for true: a scalar that is not zero, or a tensor with elements. NaN
// counts as true. Errors: kInvalidArgument when the condition is not connected (dtype kUndefined),
// kUnsupported for a type without a zero.
Result<bool> IsTrue(const TensorType& type, const void* condition);

// The subgraph of an If or a Case for this value of its input 0; the index of a Case that is out of
// range is the last one. Errors as IsTrue; kInvalidArgument when the index is not one int32.
// REQUIRES: SubgraphUseOf(node.type) is kIf or kCase.
Result<size_t> ChosenBranch(const Node& node, const TensorType& type, const void* value);

// InlineCalls, and the same for every If and Case whose input 0 is a Const or computed from
// constants alone, also where that only shows after a call or a branch around it was inlined: its
// branch takes its place, and what no condition can choose is dropped. Errors as InlineCalls.
Status InlineKnownBranches(Model& model, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_REWRITE_BRANCHES_H_
