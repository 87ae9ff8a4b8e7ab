// ReaderBounds: what random integers must stay below, because a graph looks things up with them.
#ifndef NPUMESH_LAUNCH_RUN_READER_BOUNDS_H_
#define NPUMESH_LAUNCH_RUN_READER_BOUNDS_H_

#include <cstdint>
#include <map>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// For inputs of the main graph, by data index, that an operator takes as positions in a tensor
// (Gather, Scatter and their like), also through casts and views: the least dimension of that
// tensor, which every position is below, whatever the axis is. Several readers: the least of all.
// Tensors are weights or inputs whose shapes the graph says; others bound nothing.
std::map<int64_t, int64_t> ReaderBounds(const Model& model, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_READER_BOUNDS_H_
