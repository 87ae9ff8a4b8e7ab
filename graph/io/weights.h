// Weights: the bytes behind Const and FileConstant nodes.
#ifndef NPUMESH_GRAPH_IO_WEIGHTS_H_
#define NPUMESH_GRAPH_IO_WEIGHTS_H_

#include <string>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "runtime/base/status.h"

namespace npumesh {

// The value of a Const, Constant or FileConstant node. Files are mapped, not read. A relative
// `file_path` is looked up in the working directory, then beside the package `model_path` (its
// folder plus the path, plus its last two components, plus its last), and the first place that
// differs from the working directory is said once in the log. Errors name node, field and file:
// shape and bytes do not fit (kCorrupt), file missing (kNotFound), path that leaves the package by
// ".." (kInvalidArgument).
Result<Tensor> LoadWeight(const Node& node, const std::string& model_path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_WEIGHTS_H_
