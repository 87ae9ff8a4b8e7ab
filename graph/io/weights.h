// Weights: the bytes behind Const and FileConstant nodes.
#ifndef NPUMESH_GRAPH_IO_WEIGHTS_H_
#define NPUMESH_GRAPH_IO_WEIGHTS_H_

#include <string>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "runtime/base/status.h"

namespace npumesh {

// The value of a Const, Constant or FileConstant node; file and shape of a FileConstant come from
// its attributes only. Files are mapped, not read.
//
// A path is looked up in the package, the folder of `model_path`: below it, below the folder above
// it where that leads back into the package, then by its last two components and its last one. So
// a package works wherever it lies. What it lacks is looked for where the path leads: a relative
// one below the working directory and below the folder above the package. Whether a weight may come
// from there, and links that leave the package, are the business of CheckWeightPlaces
// (weight_places.h). Bytes beyond the shape are ignored, with one warning for a Const.
//
// Errors name model, node, field and file: kCorrupt (shape and bytes do not fit), kNotFound (no
// such file), kInvalidArgument (the node is no constant), kUnsupported (dtype without a fixed
// width).
Result<Tensor> LoadWeight(const Node& node, const std::string& model_path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_WEIGHTS_H_
