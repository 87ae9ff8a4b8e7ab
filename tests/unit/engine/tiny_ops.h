// A small set of operators for tests of passes, engine and session: just enough to have every kind.
#ifndef NPUMESH_TESTS_UNIT_ENGINE_TINY_OPS_H_
#define NPUMESH_TESTS_UNIT_ENGINE_TINY_OPS_H_

#include <string>
#include <vector>

#include "graph/ir/graph_builder.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them; y = f(x...) on int64 elements unless said otherwise.
//   Plus (x1, x2)      elementwise sum of equal shapes; pure
//   Negate (x)         elementwise
//   Total (x)          scalar sum of x; not elementwise
//   Move (x)           copy; not elementwise
//   Reshape (x, shape) view; the value of shape decides
//   Zeros (dims)       int64 zeros of shape dims
//   Shape (x)          int64 dims of x, which the engine answers without a step
//   Pick (x, i)        scalar x[i]; fails when i is outside
//   Pack (x*)          scalars to a vector
//   Store (ref, value) in place: ref = value
//   Accumulate (ref, value) in place: ref += value
//   AccumulateAll (value, refs*) in place, without outputs: each of refs += value
//   Random (x)         x, but not pure
//   Print (x)          no outputs; side effect
//   Send (x, group)    collective without outputs and without communication
//   Meet (x, group)    collective: sum over the ranks of the group
//   Fail (x)           fails when it runs
//   NoKernel (x)       make_kernel fails with kUnsupported
//   NoInfer (x)        infer fails with kUnsupported
//   Bare (x)           registered without a kernel
OpRegistry TinyOps();

// The integers of a tensor.
std::vector<int64_t> IntsIn(const Tensor& tensor);
Tensor IntTensor(const std::vector<int64_t>& values);  // a vector
Tensor IntTensor(Shape shape, const std::vector<int64_t>& values);
TensorType IntType(Shape shape);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_ENGINE_TINY_OPS_H_
