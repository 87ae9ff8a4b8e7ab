// Weights: the bytes behind Const and FileConstant nodes.
#ifndef NPUMESH_GRAPH_IO_WEIGHTS_H_
#define NPUMESH_GRAPH_IO_WEIGHTS_H_

#include <string>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "runtime/base/status.h"

namespace npumesh {

// The value of a Const, Constant or FileConstant node; file and shape of a FileConstant come from
// its attributes only (air-format reference 2.5 and 3.6). Files are mapped, not read.
//
// A relative path is looked up in the working directory, then beside the package `model_path`: in
// its folder, in the folder above, then its last two components and its last one in the folder of
// the package. A place other than the working directory is said once in the log. Bytes beyond the
// shape are ignored, with one warning for a Const.
//
// Errors name model, node, field and file: kCorrupt (shape and bytes do not fit), kNotFound (no
// such file), kInvalidArgument (the node is no constant; a path that leaves package and working
// directory by ".."), kUnsupported (dtype without a fixed width).
Result<Tensor> LoadWeight(const Node& node, const std::string& model_path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_WEIGHTS_H_
