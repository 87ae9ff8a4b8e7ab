// Rotary embedding written out with Neg, ConcatV2, Mul and Add, as one kernel. It has the bits of
// the operators one by one. (RotaryPositionEmbedding rounds 16 bits once only: rope.h.)
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_HALF_ROTATION_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_HALF_ROTATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/ir/tensor.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// Rows along the last axis. Distances are in elements, one for each axis of y before the last; 0
// repeats rows. Elements of a row lie side by side.
struct HalfRotation {
  TensorType y;  // float32, float16 or bfloat16, as all inputs are; an even last axis
  std::vector<int64_t> x, cos, sin;
};

// y = x * cos + (-x2, x1) * sin with slots x, cos and sin: RotateRows of rotate_rows.h.
std::unique_ptr<Kernel> MakeHalfRotation(const HalfRotation& rotation);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_HALF_ROTATION_H_
