// What a Data or RefData node says of the tensor that a caller feeds to it.
#ifndef NPUMESH_GRAPH_IR_GRAPH_INPUT_H_
#define NPUMESH_GRAPH_IR_GRAPH_INPUT_H_

#include "graph/ir/graph.h"

namespace npumesh {

// The descriptor of the node's output with the dtype and shape of its input's descriptor, which is
// the one to trust: TorchAir's converters change the dtype of the output (an int argument that is
// also used as a float says float there). The output's stands where the input has no descriptor or
// one that says nothing, and its shape where it carries an `origin_shape`.
TensorDesc GraphInputDesc(const Node& node);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_GRAPH_INPUT_H_
