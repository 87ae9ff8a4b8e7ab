// Model to ModelDef, and the bytes of an .air file.
#include <filesystem>
#include <system_error>

#include "graph/io/model_codec.h"
#include "graph/io/model_file.h"
#include "graph/io/name_check.h"
#include "graph/io/port_names.h"
#include "graph/io/wire.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

namespace pb = ge::proto;

void EncodeNode(const Graph& graph, const Node& node, Form form, pb::OpDef* def) {
  RestoreRemainder(node.opaque, def);
  def->set_name(node.name);
  def->set_type(node.type);
  // TorchAir gives inputs of the graph a descriptor but no entry.
  const bool bare = form == Form::kTorchAir && IsInputType(node.type);
  for (const std::optional<Value>& input : node.inputs) {
    if (input) {
      def->add_input(fmt::format("{}:{}", graph.node(input->node).name, input->port));
    } else if (!bare) {
      def->add_input("");
    }
  }
  for (NodeId control : node.controls) {
    def->add_input(fmt::format("{}:-1", graph.node(control).name));
  }
  EncodeAttrs(node.attrs, form, def->mutable_attr());
  PutPortNames(node, form, def);
  for (const TensorDesc& desc : node.input_descs) EncodeDesc(desc, form, def->add_input_desc());
  for (const TensorDesc& desc : node.output_descs) EncodeDesc(desc, form, def->add_output_desc());
  if (form == Form::kGe) {
    for (pb::TensorDescriptor& desc : *def->mutable_input_desc()) desc.mutable_shape();
    for (pb::TensorDescriptor& desc : *def->mutable_output_desc()) desc.mutable_shape();
  }
  for (const std::string& name : node.subgraphs) def->add_subgraph_name(name);
}

// Records of nodes that a pass has removed since would make the file unreadable.
template <typename Records, typename Add>
void KeepLiveRecords(const Graph& graph, const Records& records, Add add) {
  for (const std::string& record : records) {
    if (graph.Find(record.substr(0, record.rfind(':'))) != kNoNode) add(record);
  }
}

// The attributes that GE gives every model, with the values it gives them.
void AddModelAttrs(AttrDefs* attrs) {
  for (const char* key :
       {"memory_size", "p2p_memory_size", "stream_num", "event_num", "label_num", "weight_size"}) {
    if (!attrs->contains(key)) (*attrs)[key].set_i(0);
  }
  if (!attrs->contains("target_type")) (*attrs)["target_type"].set_s("MINI");
}

uint64_t ConstantBytes(const Graph& graph) {
  uint64_t bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    for (const auto& [key, value] : node.attrs) {
      if (const auto* tensor = value.get<TensorAttr>()) bytes += tensor->data->size();
    }
  }
  return bytes;
}

Status TooLarge(uint64_t bytes) {
  return Error(Code::kUnsupported,
               "the model needs {} bytes; an AIR file ends at {}. Keep large weights in files "
               "(FileConstant)",
               bytes, kMaxMessageBytes);
}

Status CheckGraph(const Graph& graph) {
  NPUMESH_RETURN_IF_ERROR(graph.Verify());
  return CheckNames(graph);
}

Status CheckBeforeSaving(const Model& model) {
  uint64_t bytes = ConstantBytes(model.graph);
  NPUMESH_RETURN_IF_ERROR(CheckGraph(model.graph));
  for (const Graph& graph : model.subgraphs) {
    NPUMESH_RETURN_IF_ERROR(CheckGraph(graph));
    bytes += ConstantBytes(graph);
  }
  return bytes > kMaxMessageBytes ? TooLarge(bytes) : Status();
}

}  // namespace

std::vector<NodeId> FileOrder(const Graph& graph) {
  Result<std::vector<NodeId>> order = graph.StableOrder();
  if (order.ok()) return *std::move(order);
  std::vector<NodeId> ids;
  for (const Node& node : graph.nodes()) {
    if (!node.removed) ids.push_back(node.id);
  }
  return ids;
}

void EncodeGraph(const Graph& graph, Form form, pb::GraphDef* def) {
  RestoreRemainder(graph.opaque(), def);
  def->set_name(graph.name());
  const std::vector<std::string> foreign(def->input().begin(), def->input().end());
  def->clear_input();
  for (NodeId id : FileOrder(graph)) {
    const Node& node = graph.node(id);
    if (form == Form::kGe && IsInputType(node.type)) def->add_input(node.name + ":0");
    EncodeNode(graph, node, form, def->add_op());
  }
  KeepLiveRecords(graph, foreign, [&](const std::string& r) { def->add_input(r); });
  KeepLiveRecords(graph, graph.output_records(), [&](const std::string& r) { def->add_output(r); });
  EncodeAttrs(graph.attrs(), form, def->mutable_attr());
}

void EncodeModel(const Model& model, Form form, pb::ModelDef* def) {
  RestoreRemainder(model.opaque, def);
  def->set_name(model.name);
  def->set_version(model.version);
  def->set_custom_version(model.custom_version);
  EncodeGraph(model.graph, form, def->add_graph());
  for (const Graph& graph : model.subgraphs) EncodeGraph(graph, form, def->add_graph());
  EncodeAttrs(model.attrs, form, def->mutable_attr());
  if (form != Form::kGe) return;
  AddModelAttrs(def->mutable_attr());
  const bool nameless = model.graph.name().empty() && model.FindSubgraph("graph_1") == nullptr;
  if (nameless) def->mutable_graph(0)->set_name("graph_1");
}

Result<std::string> SerializeAir(const Model& model) {
  NPUMESH_RETURN_IF_ERROR(CheckBeforeSaving(model));
  pb::ModelDef def;
  EncodeModel(model, Form::kGe, &def);
  if (def.ByteSizeLong() > kMaxMessageBytes) return TooLarge(def.ByteSizeLong());
  return SerializeWire(def);
}

Status SaveAir(const Model& model, const std::string& path, const SaveOptions& options,
               FileSystem& fs) {
  Result<std::string> bytes = SerializeAir(model);
  if (!bytes.ok()) return bytes.status().WithContext(path);
  NPUMESH_RETURN_IF_ERROR(WriteFile(path, *bytes, FileKind::kData, fs));
  if (!options.read_only) return Status();
  std::error_code error;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read, error);
  if (!error) return Status();
  return Error(Code::kIo, "{}: permission 0400: {}", path, error.message());
}

}  // namespace npumesh
