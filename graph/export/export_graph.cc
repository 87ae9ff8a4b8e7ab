#include "graph/export/export_graph.h"

#include <algorithm>

#include "graph/engine/analyse/partial_types.h"
#include "graph/ir/graph_input.h"
#include "graph/passes/analysis/bound_graph.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

constexpr const char* kModuleStack = "nn_module_stack";

// RefData_<dims>_<strides>_<offset>_<number>: TorchAir's last part is the address of a Python
// object; ours is the index of the input, so that names are the same in every run.
std::string RefDataName(const Node& node) {
  const Shape shape = GraphInputDesc(node).shape.value_or(Shape());
  std::string dims;
  std::string strides;
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    dims = fmt::format("_{}", shape[i]) + dims;
    strides = fmt::format("_{}", stride) + strides;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return fmt::format("RefData{}{}_0_{}", dims, strides, node.IntAttr("index", 0));
}

void OpenDesc(TensorDesc& desc) {
  if (!desc.shape || !desc.shape->has_rank()) return;
  for (int64_t& dim : desc.shape->mutable_dims()) {
    if (dim >= 2) dim = kUnknownDim;
  }
}

// By node id: true for what reads an input of the graph, directly or not.
std::vector<bool> BehindInputs(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<bool> behind(graph.nodes().size(), false);
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    bool reads = IsInputNode(node);
    for (const auto& input : node.inputs) {
      reads = reads || (input && behind[static_cast<size_t>(input->node)]);
    }
    behind[static_cast<size_t>(id)] = reads;
  }
  return behind;
}

Status RefuseOpenInputs(const Graph& graph) {
  for (const NodeId id : graph.DataNodes()) {
    const Node& node = graph.node(id);
    const std::optional<Shape> shape = GraphInputDesc(node).shape;
    if (!shape || shape->is_static()) continue;
    return Error(Code::kInvalidArgument,
                 "input \"{}\" has the shape {}, which is open, but dynamic is false; export with "
                 "--dynamic (dynamic=true), or give the input a fixed shape",
                 node.name, shape->ToString());
  }
  return Status();
}

// Modules in a stack as TorchAir writes it: {'name': ("path", <class 'type'>), ...}.
size_t ModuleDepth(std::string_view stack) {
  constexpr std::string_view kModule = "<class '";
  size_t depth = 0;
  for (size_t at = stack.find(kModule); at != stack.npos; at = stack.find(kModule, at + 1)) ++depth;
  return depth;
}

}  // namespace

Status MakeRefData(const OpRegistry& registry, Graph* graph) {
  std::vector<NodeId> written;
  {
    const BoundGraph bound(*graph, registry);
    for (const InPlaceWrite& write : bound.writes()) {
      const NodeId root = bound.StorageRoot(write.target).node;
      if (IsData(graph->node(root))) written.push_back(root);
    }
  }
  for (const NodeId id : written) {
    Node& node = graph->node(id);
    if (!IsData(node) || node.output_descs.empty()) continue;
    const std::string before = node.name;
    const std::string name = RefDataName(node);
    if (graph->Find(name) != kNoNode) {
      NPUMESH_WARNING("input \"{}\" is written in place but stays Data: \"{}\" exists", before,
                      name);
      continue;
    }
    node.type = "RefData";
    node.attrs.insert_or_assign("_origin_data_name", AttrValue::String(before));
    NPUMESH_RETURN_IF_ERROR(graph->Rename(id, name));
  }
  return Status();
}

void DeclareOutputs(const std::vector<TensorType>& types, Graph* graph) {
  const NodeId sink = graph->NetOutput();
  if (sink == kNoNode) return;
  std::vector<TensorDesc>& descs = graph->node(sink).input_descs;
  for (size_t i = 0; i < std::min(types.size(), descs.size()); ++i) {
    if (descs[i].shape || types[i].dtype == DataType::kUndefined) continue;
    descs[i].dtype = types[i].dtype;
    descs[i].shape = types[i].shape;
  }
}

Status OpenDimensions(bool dynamic, Graph* graph) {
  if (!dynamic) return RefuseOpenInputs(*graph);
  for (const NodeId id : graph->DataNodes()) {
    Node& node = graph->node(id);
    for (TensorDesc& desc : node.input_descs) OpenDesc(desc);
    for (TensorDesc& desc : node.output_descs) OpenDesc(desc);
  }
  const NodeId sink = graph->NetOutput();
  if (sink == kNoNode) return Status();
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph->StableOrder());
  const std::vector<bool> behind = BehindInputs(*graph, order);
  Node& output = graph->node(sink);
  for (size_t i = 0; i < output.inputs.size(); ++i) {
    const std::optional<Value>& value = output.inputs[i];
    if (value && behind[static_cast<size_t>(value->node)]) OpenDesc(output.input_descs[i]);
  }
  return Status();
}

Status DescribeInnerTensors(const OpRegistry& registry, GroupProvider* groups, Model* model) {
  Graph& graph = model->graph;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.StableOrder());
  const BoundGraph bound(graph, registry);
  NPUMESH_ASSIGN_OR_RETURN(const PartialTypes types, PartialTypes::Of(*model, bound, order, groups,
                                                                      PartialEffort::kThorough));
  const NodeId sink = graph.NetOutput();
  std::vector<TensorDesc> declared;
  if (sink != kNoNode) declared = graph.node(sink).input_descs;
  DescribePartly(types, graph);
  if (sink != kNoNode) graph.node(sink).input_descs = std::move(declared);
  return Status();
}

void NumberInputs(Graph* graph) {
  std::vector<NodeId> inputs = graph->DataNodes();
  std::stable_partition(inputs.begin(), inputs.end(),
                        [&](NodeId id) { return IsData(graph->node(id)); });
  int64_t index = 0;
  for (const NodeId id : inputs) {
    graph->node(id).attrs.insert_or_assign("index", AttrValue::Int(index++));
  }
}

void FilterModuleStacks(bool record, Graph* graph) {
  for (const Node& each : graph->nodes()) {
    if (each.removed || each.FindAttr(kModuleStack) == nullptr) continue;
    if (record && ModuleDepth(each.StringAttr(kModuleStack, "")) >= 2) continue;
    graph->node(each.id).attrs.erase(kModuleStack);
  }
}

}  // namespace npumesh
