// Text forms that are only written: for people and for viewers. Together with ToPbtxt and
// ToGeProtoText (model_file.h) these are all forms that the vendor's tools dump graphs in.
#ifndef NPUMESH_GRAPH_IO_GRAPH_TEXT_H_
#define NPUMESH_GRAPH_IO_GRAPH_TEXT_H_

#include <string>

#include "graph/ir/graph.h"

namespace npumesh {

// TorchAir's "txt": the main graph as a text GraphDef, not wrapped in `graph {}`. LoadModel reads
// it.
std::string ToGraphDefText(const Model& model);

// TorchAir's "py": a script that builds the main graph through torchair's module of GE operators,
// one line for a node. npumesh has no Python; the head of the file says so. Constants of more than
// 64 elements stand there by type and shape only.
std::string ToPythonText(const Model& model);

// ge_onnx: text ge.onnx.ModelProto of all graphs, for viewers. Level 1: everything; 2: without
// texts and tensor data; 3: nodes and edges only.
std::string ToOnnxText(const Model& model, int level = 1);

// ge_readable: one line for a node of the main graph.
std::string ToReadableText(const Model& model);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_GRAPH_TEXT_H_
