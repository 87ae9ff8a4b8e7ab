// ge_proto text, the dump of GE, and TorchAir's text GraphDef.
#include <google/protobuf/util/json_util.h>

#include <array>
#include <map>
#include <utility>

#include "graph/io/graph_text.h"
#include "graph/io/model_codec.h"
#include "graph/io/model_file.h"
#include "graph/io/wire.h"

namespace npumesh {
namespace {

namespace pb = ge::proto;

// Drops what the dumps of levels 2 and 3 leave out.
void Trim(pb::GraphDef* graph) {
  for (pb::OpDef& op : *graph->mutable_op()) {
    AttrDefs* attrs = op.mutable_attr();
    for (const char* key : {"node_def", "op_def", "func_def"}) attrs->erase(key);
    if (IsConstType(op.type())) attrs->erase("value");
  }
}

// For each entry of `input` its position among the readers of the same output, -1 for none: by this
// GE restores the order of readers when it loads the text.
void AddReaderOrder(pb::GraphDef* graph) {
  std::map<std::string, int64_t> readers;
  for (pb::OpDef& op : *graph->mutable_op()) {
    if (op.input().empty()) continue;
    auto* list = (*op.mutable_attr())["_src_out_peer_index_for_ge_txt_load"].mutable_list();
    for (const std::string& input : op.input()) {
      list->add_i(input.empty() ? -1 : readers[input]++);
    }
  }
}

}  // namespace

std::string ToGeProtoText(const Model& model, int level) {
  pb::ModelDef def;
  EncodeModel(model, Form::kGe, &def);
  for (pb::GraphDef& graph : *def.mutable_graph()) {
    if (level > 1) Trim(&graph);
    AddReaderOrder(&graph);
  }
  return PrintText(def);
}

std::string ToGeProtoJson(const Model& model) {
  pb::ModelDef def;
  EncodeModel(model, Form::kGe, &def);
  for (pb::GraphDef& graph : *def.mutable_graph()) Trim(&graph);
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(def, &text, options);
  return status.ok() ? text : std::string();
}

std::string ToGraphDefText(const Model& model) {
  pb::GraphDef graph;
  EncodeGraph(model.graph, Form::kTorchAir, &graph);
  return PrintText(graph);
}

}  // namespace npumesh
