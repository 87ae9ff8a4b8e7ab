// Whole models between messages of ge_ir.proto and the graph in memory. Internal to graph/io.
#ifndef NPUMESH_GRAPH_IO_MODEL_CODEC_H_
#define NPUMESH_GRAPH_IO_MODEL_CODEC_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/io/attr_codec.h"
#include "graph/ir/graph.h"
#include "proto/ge_ir.pb.h"
#include "runtime/base/status.h"

namespace npumesh {

// Types whose nodes feed a graph from outside and register themselves as its inputs.
bool IsInputType(std::string_view type);
bool IsConstType(std::string_view type);  // "Const" and its old name "Constant"

// Empties `def`. Reads external data of constants beside `path`, numbers the inputs and verifies
// every graph. Errors name graph, node and field.
Result<Model> DecodeModel(ge::proto::ModelDef& def, const std::string& path);

// Live nodes, producers first where the graph allows it, otherwise as they stand.
std::vector<NodeId> FileOrder(const Graph& graph);

void EncodeModel(const Model& model, Form form, ge::proto::ModelDef* def);
void EncodeGraph(const Graph& graph, Form form, ge::proto::GraphDef* def);

// `Const` with `location` and `length`: reads the bytes from beside the model file `path` into
// `value` and erases both attributes, as GE's loader does. Other nodes stay.
Status LoadExternalData(const std::string& path, Node* node);

// NodeDef-like text as the GraphDef it was made from; names what the text leaves out "graph_1".
Result<ge::proto::GraphDef> ParsePbtxt(std::string_view text);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_MODEL_CODEC_H_
