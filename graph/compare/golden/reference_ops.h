// ReferenceOps: the built-in operators, with those that accumulate doing it in float64.
//
// A run with them tells rounding from error: whatever a kernel adds up in float32, in whatever
// order, must come close to the same sum in float64, rounded once.
#ifndef NPUMESH_GRAPH_COMPARE_GOLDEN_REFERENCE_OPS_H_
#define NPUMESH_GRAPH_COMPARE_GOLDEN_REFERENCE_OPS_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// In float64: products (Operator::product) of floating types, ReduceSum, ReduceMean, ReduceProd,
// SoftmaxV2 and RmsNorm. All others are those of BuiltinOps. Tensors between operators keep their
// types. Made once, immutable. Slow: plain loops.
const OpRegistry& ReferenceOps();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_GOLDEN_REFERENCE_OPS_H_
