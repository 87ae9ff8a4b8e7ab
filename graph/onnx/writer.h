// Graphs of ours as ONNX models, for viewers and for programs that read ONNX.
#ifndef NPUMESH_GRAPH_ONNX_WRITER_H_
#define NPUMESH_GRAPH_ONNX_WRITER_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"

namespace npumesh {

// The main graph as bytes of an ONNX model, operator set 17. Values are called as the node that
// makes them; those of further ports `<node>.<port>`. Descriptors have to say the dtypes of inputs
// and of what the graph returns, where there are types (InferTypes fills them in). Errors:
// kUnsupported with all nodes whose operators have no counterpart; a weight that cannot be loaded.
Result<std::string> WriteOnnx(const Model& model);

// Operators of ours that have a counterpart in ONNX, sorted.
std::vector<std::string_view> OperatorsWithCounterpart();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_WRITER_H_
