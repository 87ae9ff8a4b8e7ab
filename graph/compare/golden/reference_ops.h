// ReferenceOps: the built-in operators, with those that round doing it once, at the end.
//
// A run with them tells rounding from error: whatever a kernel adds up in float32, in whatever
// order, must come close to the same sum in float64, rounded once.
#ifndef NPUMESH_GRAPH_COMPARE_GOLDEN_REFERENCE_OPS_H_
#define NPUMESH_GRAPH_COMPARE_GOLDEN_REFERENCE_OPS_H_

#include <memory>

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// A kernel of the operator that computes in float64 and rounds its outputs to their types: products
// (Axes::product) of floating types by plain loops, what has a loop program by the wide machine
// (toolbox/machine), and what knows doubles by itself. Null for operators that know none, that
// give something else than floats, meet other ranks, or decide by a rounded value whether they
// jump.
std::unique_ptr<Kernel> MakeFloat64Kernel(const OpContext& op, const Operator& builtin);

// The built-in operators with the kernels of MakeFloat64Kernel where they have one. Tensors between
// operators keep their types. Made once, immutable. Slow: plain loops.
const OpRegistry& ReferenceOps();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_GOLDEN_REFERENCE_OPS_H_
