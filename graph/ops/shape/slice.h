// What slices take, for passes that look for halves of a tensor.
#ifndef NPUMESH_GRAPH_OPS_SHAPE_SLICE_H_
#define NPUMESH_GRAPH_OPS_SHAPE_SLICE_H_

#include <cstdint>
#include <optional>

#include "graph/ops/core/operator.h"

namespace npumesh {

// The element of x, in C order, at which a node of type Slice, SliceD, StridedSlice or
// StridedSliceV2 begins, when it takes neighbours along each dimension. nullopt: it takes steps
// other than 1, its box is not known before it runs, or it is a node of another type.
std::optional<int64_t> FirstOfSlice(const OpContext& op);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_SHAPE_SLICE_H_
