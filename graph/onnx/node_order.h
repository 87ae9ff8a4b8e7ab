// The order of the nodes of an ONNX graph: each after those that make what it reads.
//
// ONNX asks for it, and files of some converters do not have it.
//
// Thread-safety: may be called by several threads.
#ifndef NPUMESH_GRAPH_ONNX_NODE_ORDER_H_
#define NPUMESH_GRAPH_ONNX_NODE_ORDER_H_

#include <optional>
#include <set>
#include <string>

#include "graph/onnx/onnx_model.h"
#include "runtime/base/status.h"

namespace npumesh {

// The names that a node reads, with those that graphs in its attributes read of the graphs around.
std::set<std::string> NamesReadBy(const OnnxNode& node);

struct SortedModel {
  OnnxModel model;
  size_t moved = 0;  // nodes that stood before one that they read
};

// `model` with the nodes of all graphs and functions in order; nodes that are in order keep their
// places. nullopt: all of them are. Error (kCorrupt): nodes read each other in a circle; it names
// them.
Result<std::optional<SortedModel>> InOrder(const OnnxModel& model);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_NODE_ORDER_H_
