// Models whose quantisation is written as pairs of nodes: what DequantizeLinear makes of bytes,
// computed with as floats, and made bytes again by QuantizeLinear. Where the three are one operator
// of bytes, they become it.
//
// Convolutions and products then add up integers, exactly, where floats would have been rounded:
// results may differ from those of the nodes as they stand by one step of the quantisation where a
// sum lies near the middle between two. ONNX Runtime does the same.
#ifndef NPUMESH_GRAPH_ONNX_QUANTISED_NODES_H_
#define NPUMESH_GRAPH_ONNX_QUANTISED_NODES_H_

#include <optional>

#include "graph/onnx/onnx_model.h"

namespace npumesh {

// The model with nodes of bytes in its main graph; nullopt: it has no such pairs. REQUIRES: the
// nodes are in order.
std::optional<OnnxModel> WithQuantisedNodes(const OnnxModel& model);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_QUANTISED_NODES_H_
