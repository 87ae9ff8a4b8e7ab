// ModelDef to Model: nodes, edges, inputs, by the rules of GE's loader.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "graph/io/model_codec.h"
#include "graph/io/name_check.h"
#include "graph/io/net_output.h"
#include "graph/io/port_names.h"
#include "graph/io/wire.h"
#include "graph/ir/node_kind.h"
#include "runtime/base/log.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

namespace pb = ge::proto;

// Restores the order of consumers in GE's own text dumps; our edges have no such order.
constexpr char kConsumerOrder[] = "_src_out_peer_index_for_ge_txt_load";

struct EdgeText {
  std::string_view producer;
  int64_t index = 0;  // negative: control
};

// The leading decimal of `text`, as C reads it: 0 without one, saturated when it is long.
int64_t LeadingInt(std::string_view text) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  size_t i = std::min(text.find_first_not_of(" \t"), text.size());
  const bool negative = i < text.size() && text[i] == '-';
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  int64_t value = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    value = std::min(kLimit, value * 10 + (text[i] - '0'));
  }
  return negative ? -value : value;
}

// Splits at the last colon, because names may hold colons. REQUIRES: `text` holds one.
EdgeText SplitEdge(std::string_view text) {
  const size_t colon = text.rfind(':');
  return {text.substr(0, colon), LeadingInt(text.substr(colon + 1))};
}

// A scalar and an absent shape look alike in GE's files. Inputs and constants mean a scalar, all
// others mean that nothing is known.
void SettleShapes(Node* node) {
  const bool declares = IsInputType(node->type) || IsConstType(node->type);
  for (auto* descs : {&node->input_descs, &node->output_descs}) {
    for (TensorDesc& desc : *descs) {
      if (desc.shape && desc.shape->rank() > 0) continue;
      desc.shape = declares ? std::optional<Shape>(Shape()) : std::nullopt;
    }
  }
}

class GraphReader {
 public:
  GraphReader(pb::GraphDef& def, const std::string& path) : def_(def), path_(path) {}

  Result<Graph> Read() {
    graph_.set_name(std::exchange(*def_.mutable_name(), {}));
    for (int i = 0; i < def_.op_size(); ++i) NPUMESH_RETURN_IF_ERROR(AddNode(i));
    for (size_t i = 0; i < edges_.size(); ++i) {
      NPUMESH_RETURN_IF_ERROR(AddEdges(static_cast<NodeId>(i)));
    }
    def_.clear_op();
    NPUMESH_RETURN_IF_ERROR(TakeRecords());
    graph_.attrs() = DecodeAttrs(def_.mutable_attr());
    graph_.opaque() = Remainder(def_);
    return std::move(graph_);
  }

 private:
  std::string Who(std::string_view node) const {
    return fmt::format("graph \"{}\" node \"{}\"", Quotable(graph_.name()), Quotable(node));
  }

  Status AddNode(int position) {
    pb::OpDef& def = *def_.mutable_op(position);
    Node node;
    node.name = std::exchange(*def.mutable_name(), {});
    node.type = std::exchange(*def.mutable_type(), {});
    if (node.name.empty() || node.type.empty()) {
      return Error(Code::kCorrupt, "graph \"{}\" op {}: {} is empty", graph_.name(), position,
                   node.name.empty() ? "name" : "type");
    }
    TakeDescs(def.mutable_input_desc(), &node.input_descs);
    TakeDescs(def.mutable_output_desc(), &node.output_descs);
    node.inputs.resize(node.input_descs.size());
    TakePortNames(Who(node.name), def, &node);
    def.mutable_attr()->erase(kConsumerOrder);
    TakeAttrs(def, &node);
    SettleShapes(&node);
    node.subgraphs.assign(def.subgraph_name().begin(), def.subgraph_name().end());
    def.clear_subgraph_name();
    edges_.emplace_back(def.input().begin(), def.input().end());
    def.clear_input();
    node.opaque = Remainder(def);
    def.Clear();
    Status loaded = LoadExternalData(path_, &node);
    if (!loaded.ok()) return loaded.WithContext(Who(node.name));
    if (graph_.Find(node.name) != kNoNode) {
      return Error(Code::kCorrupt, "{}: a second op of this name, at position {}", Who(node.name),
                   position);
    }
    return graph_.Add(std::move(node)).status();
  }

  static void TakeDescs(google::protobuf::RepeatedPtrField<pb::TensorDescriptor>* defs,
                        std::vector<TensorDesc>* descs) {
    descs->reserve(static_cast<size_t>(defs->size()));
    for (pb::TensorDescriptor& def : *defs) descs->push_back(DecodeDesc(def));
    defs->Clear();
  }

  // What TakePortNames left of the name tables stays in `def`.
  static void TakeAttrs(pb::OpDef& def, Node* node) {
    AttrDefs tables;
    for (const char* key :
         {"_input_name_key", "_input_name_value", "_output_name_key", "_output_name_value"}) {
      const auto table = def.mutable_attr()->find(key);
      if (table == def.mutable_attr()->end()) continue;
      tables[key] = std::move(table->second);
      def.mutable_attr()->erase(table);
    }
    node->attrs = DecodeAttrs(def.mutable_attr());
    *def.mutable_attr() = std::move(tables);
  }

  Status AddEdges(NodeId reader) {
    Node& node = graph_.node(reader);
    size_t port = 0;
    for (const std::string& text : edges_[static_cast<size_t>(reader)]) {
      if (text.find(':') == std::string::npos) {
        if (!text.empty()) {
          NPUMESH_WARNING_ONCE("{} input {}: \"{}\" has no \":<output>\"; taken as unconnected",
                               Who(node.name), port, text);
        }
        ++port;
        continue;
      }
      const EdgeText edge = SplitEdge(text);
      const NodeId producer = graph_.Find(edge.producer);
      if (producer == kNoNode) {
        return Error(Code::kCorrupt, "{} input {}: producer \"{}\" does not exist", Who(node.name),
                     edge.index < 0 ? text : std::to_string(port), edge.producer);
      }
      if (edge.index < 0) {
        node.controls.push_back(producer);
        continue;
      }
      NPUMESH_RETURN_IF_ERROR(CheckPorts(node, port, producer, edge.index));
      node.inputs[port++] = Value{producer, static_cast<int>(edge.index)};
    }
    return Status();
  }

  Status CheckPorts(const Node& node, size_t port, NodeId producer, int64_t index) const {
    const Node& source = graph_.node(producer);
    if (index >= static_cast<int64_t>(source.output_descs.size())) {
      return Error(Code::kCorrupt, "{} input {}: output {} of \"{}\" does not exist; it has {}",
                   Who(node.name), port, index, source.name, source.output_descs.size());
    }
    if (port >= node.input_descs.size()) {
      return Error(Code::kCorrupt, "{} input {}: fed by \"{}:{}\", but there are {} input_desc",
                   Who(node.name), port, source.name, index, node.input_descs.size());
    }
    return Status();
  }

  // Input nodes register themselves, so only records of other nodes are kept, in `opaque`.
  Status TakeRecords() {
    std::vector<std::string> foreign;
    for (const auto* records : {&def_.input(), &def_.output()}) {
      for (const std::string& record : *records) {
        const NodeId node = graph_.Find(SplitEdge(record).producer);
        if (record.find(':') == std::string::npos || node == kNoNode) {
          return Error(Code::kCorrupt, "graph \"{}\" {} \"{}\": no such node", graph_.name(),
                       records == &def_.input() ? "input" : "output", record);
        }
        if (records == &def_.input() && !IsInputType(graph_.node(node).type)) {
          foreign.push_back(record);
        }
      }
    }
    graph_.output_records().assign(def_.output().begin(), def_.output().end());
    def_.clear_output();
    def_.mutable_input()->Assign(foreign.begin(), foreign.end());
    return Status();
  }

  pb::GraphDef& def_;
  const std::string& path_;
  Graph graph_;
  std::vector<std::vector<std::string>> edges_;  // `input` of each op
};

// True when the attribute `index` of these nodes is 0...n-1, each once, shifted by `first`.
bool WellNumbered(const Graph& graph, const std::vector<NodeId>& nodes, int64_t first) {
  std::set<int64_t> seen;
  for (NodeId id : nodes) {
    const int64_t index = graph.node(id).IntAttr("index", -1);
    if (index < first || index - first >= static_cast<int64_t>(nodes.size())) return false;
    seen.insert(index);
  }
  return seen.size() == nodes.size();
}

// What ATC does with bad numbers: node order, and as exports have it, all Data before all RefData.
void NumberInputs(Graph* graph) {
  if (WellNumbered(*graph, graph->DataNodes(), 0)) return;
  std::vector<NodeId> data;
  std::vector<NodeId> references;
  for (const Node& node : graph->nodes()) {
    if (IsData(node)) data.push_back(node.id);
    if (IsRefData(node)) references.push_back(node.id);
  }
  int64_t first = 0;
  for (const std::vector<NodeId>* nodes : {&data, &references}) {
    if (!WellNumbered(*graph, *nodes, first)) {
      NPUMESH_WARNING_ONCE(
          "graph \"{}\": attribute \"index\" of its {} {} nodes is not {}...{}; they are numbered "
          "in file order",
          graph->name(), nodes->size(), graph->node(nodes->front()).type, first,
          first + static_cast<int64_t>(nodes->size()) - 1);
      int64_t next = first;
      for (NodeId id : *nodes) graph->node(id).attrs["index"] = AttrValue::Int(next++);
    }
    first += static_cast<int64_t>(nodes->size());
  }
}

// GE resolves the names only when the file has more than its main graph.
Status CheckSubgraphs(const Model& model, const Graph& graph) {
  if (model.subgraphs.empty()) return Status();
  for (const Node& node : graph.nodes()) {
    for (const std::string& name : node.subgraphs) {
      if (name.empty() || model.FindSubgraph(name) != nullptr) continue;
      return Error(Code::kCorrupt, "graph \"{}\" node \"{}\": subgraph \"{}\" is not in the file",
                   graph.name(), node.name, name);
    }
  }
  return Status();
}

}  // namespace

bool IsInputType(std::string_view type) {
  return type == "Data" || type == "RefData" || type == "AippData" || type == "AnnData";
}

bool IsConstType(std::string_view type) {
  return type == "Const" || type == "Constant";
}

Result<Model> DecodeModel(pb::ModelDef& def, const std::string& path) {
  if (def.graph_size() == 0) return Error(Code::kCorrupt, "the model has no graph");
  Model model;
  model.path = path;
  model.name = std::exchange(*def.mutable_name(), {});
  model.version = def.version();
  def.clear_version();
  model.custom_version = std::exchange(*def.mutable_custom_version(), {});
  std::set<std::string> names;
  for (int i = 0; i < def.graph_size(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(Graph graph, GraphReader(*def.mutable_graph(i), path).Read());
    def.mutable_graph(i)->Clear();
    if (!names.insert(graph.name()).second) {
      return Error(Code::kCorrupt, "graph \"{}\": a second graph of this name, at position {}",
                   graph.name(), i);
    }
    if (i == 0) {
      NumberInputs(&graph);
      NPUMESH_RETURN_IF_ERROR(AddMissingNetOutput(&graph));
    }
    NPUMESH_RETURN_IF_ERROR(graph.Verify());
    // Name tables hold bytes; what they name ports with has to fit into the strings of an .air
    // file.
    NPUMESH_RETURN_IF_ERROR(CheckNames(graph));
    (i == 0 ? model.graph : model.subgraphs.emplace_back()) = std::move(graph);
  }
  def.clear_graph();
  NPUMESH_RETURN_IF_ERROR(CheckSubgraphs(model, model.graph));
  for (const Graph& graph : model.subgraphs) NPUMESH_RETURN_IF_ERROR(CheckSubgraphs(model, graph));
  model.attrs = DecodeAttrs(def.mutable_attr());
  model.opaque = Remainder(def);
  return model;
}

}  // namespace npumesh
