// The two halves of a tensor along a dimension, which gated activations multiply.
#ifndef NPUMESH_GRAPH_OPS_ELEMENTWISE_GATED_ACTIVATIONS_H_
#define NPUMESH_GRAPH_OPS_ELEMENTWISE_GATED_ACTIVATIONS_H_

#include <cstdint>

#include "graph/ops/core/check.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// x as [outer, 2, run]: `run` elements of one half, then those of the other.
struct Halves {
  int64_t outer = 1, run = 0;
  Shape half;
};

// Of input "x" along the attribute "dim". Objects to an odd dimension.
Halves HalvesOf(const OpContext& op, Check& check);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ELEMENTWISE_GATED_ACTIVATIONS_H_
