#include "tests/fuzz/engine/graph_mutator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/op_registry.h"
#include "tests/fuzz/engine/interpreter.h"

namespace npumesh::fuzz {
namespace {

float ExtremeFloat(Dice& dice) {
  static const std::vector<float> values = {0.0f,
                                            -1.0f,
                                            1e30f,
                                            -1e30f,
                                            std::numeric_limits<float>::infinity(),
                                            std::numeric_limits<float>::quiet_NaN(),
                                            std::numeric_limits<float>::denorm_min()};
  return dice.Pick(values);
}

// The graph stays as it was when the change breaks its structure.
bool Keep(Graph& graph, Graph changed) {
  if (!changed.Verify().ok()) return false;
  graph = std::move(changed);
  return true;
}

}  // namespace

GraphMutator::GraphMutator(uint64_t seed) : dice_(seed) {
  for (const std::string_view type : BuiltinOps().Types()) types_.emplace_back(type);
}

Model GraphMutator::Mutate(Model model, std::string& did) {
  const int64_t changes = dice_.Between(1, 4);
  int64_t made = 0;
  for (int i = 0; i < 40 && made < changes; ++i) {
    const auto graphs = static_cast<int64_t>(model.subgraphs.size());
    const bool inside = graphs > 0 && dice_.Chance(20);
    Graph& graph = inside ? model.subgraphs[static_cast<size_t>(dice_.Below(graphs))] : model.graph;
    made += Change(graph, did) ? 1 : 0;
  }
  return model;
}

bool GraphMutator::Change(Graph& graph, std::string& did) {
  switch (dice_.Below(10)) {
    case 0:
    case 1:
    case 2:
      return ChangeAttribute(graph, did);
    case 3:
      return ChangeConstant(graph, did);
    case 4:
      return ChangeEdge(graph, did);
    case 5:
      return ChangeDescriptor(graph, did);
    case 6:
      return ChangeType(graph, did);
    case 7:
      return CopyNode(graph, did);
    case 8:
      return DropNode(graph, did);
    default:
      return AddControl(graph, did);
  }
}

NodeId GraphMutator::AnyNode(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (const Node& node : graph.nodes()) {
    if (!node.removed) nodes.push_back(node.id);
  }
  return dice_.Pick(nodes);
}

int64_t GraphMutator::Extreme() {
  static const std::vector<int64_t> values = {0,
                                              1,
                                              -1,
                                              -2,
                                              2,
                                              3,
                                              7,
                                              100,
                                              -100,
                                              65536,
                                              1 << 20,
                                              INT32_MAX,
                                              INT32_MIN,
                                              int64_t{1} << 32,
                                              (int64_t{1} << 31) - 2,
                                              int64_t{1} << 40,
                                              int64_t{1} << 62,
                                              INT64_MAX,
                                              INT64_MIN};
  return dice_.Pick(values);
}

AttrValue GraphMutator::ExtremeOf(const AttrValue& value) {
  if (value.get<int64_t>() != nullptr) return AttrValue::Int(Extreme());
  if (value.get<float>() != nullptr) return AttrValue::Float(ExtremeFloat(dice_));
  if (const bool* held = value.get<bool>()) return AttrValue::Bool(!*held);
  if (value.get<std::string>() != nullptr) return AttrValue::String("\x01nobody knows this");
  if (value.get<DataTypeAttr>() != nullptr) return AttrValue::Variant(DataTypeAttr{Extreme()});
  const ListAttr* list = value.get<ListAttr>();
  if (list == nullptr) return AttrValue::Int(Extreme());
  std::vector<int64_t> values = list->i;
  const auto count = static_cast<int64_t>(values.size());
  if (count > 0 && dice_.Chance(70)) values[static_cast<size_t>(dice_.Below(count))] = Extreme();
  if (dice_.Chance(30)) values.push_back(Extreme());
  if (!values.empty() && dice_.Chance(15)) values.pop_back();
  return AttrValue::Ints(values);
}

bool GraphMutator::ChangeAttribute(Graph& graph, std::string& did) {
  Node& node = graph.node(AnyNode(graph));
  if (node.attrs.empty() || node.type == "Const") return false;
  auto attribute = node.attrs.begin();
  std::advance(attribute, dice_.Below(static_cast<int64_t>(node.attrs.size())));
  did += fmt::format("{} of {}; ", attribute->first, node.name);
  if (dice_.Chance(10)) {
    node.attrs.erase(attribute);
  } else {
    attribute->second = ExtremeOf(attribute->second);
  }
  return true;
}

bool GraphMutator::ChangeConstant(Graph& graph, std::string& did) {
  std::vector<NodeId> constants;
  for (const Node& node : graph.nodes()) {
    if (!node.removed && node.type == "Const") constants.push_back(node.id);
  }
  if (constants.empty()) return false;
  Node& node = graph.node(dice_.Pick(constants));
  PlainTensor value = ConstantOf(node);
  static const std::vector<DataType> readable = {DataType::kFloat,    DataType::kFloat16,
                                                 DataType::kBfloat16, DataType::kInt32,
                                                 DataType::kInt64,    DataType::kBool};
  if (std::count(readable.begin(), readable.end(), value.dtype) == 0) return false;
  if (value.count() == 0) return false;
  Number& changed = value.at(dice_.Below(value.count()));
  changed = IsFloat(value.dtype) ? static_cast<Number>(ExtremeFloat(dice_))
                                 : RoundTo(value.dtype, static_cast<Number>(Extreme()));
  if (IsFloat(value.dtype)) changed = RoundTo(value.dtype, changed);
  if (dice_.Chance(10)) value.dims = {value.count(), 1};
  if (dice_.Chance(10)) value.dims = {value.count()};
  node.attrs["value"] = AttrValue::Value(ToTensor(value));
  did += fmt::format("value of {}; ", node.name);
  return true;
}

bool GraphMutator::ChangeEdge(Graph& graph, std::string& did) {
  Graph changed = graph;
  Node& node = changed.node(AnyNode(graph));
  if (node.inputs.empty()) return false;
  const auto input = static_cast<size_t>(dice_.Below(static_cast<int64_t>(node.inputs.size())));
  const Node& producer = changed.node(AnyNode(graph));
  const auto ports = static_cast<int64_t>(producer.output_descs.size());
  if (dice_.Chance(8)) {
    node.inputs[input] = std::nullopt;
  } else if (ports > 0) {
    node.inputs[input] = Value{producer.id, static_cast<int>(dice_.Below(ports))};
  }
  const std::string text = fmt::format("input {} of {}; ", input, node.name);
  if (!Keep(graph, std::move(changed))) return false;
  did += text;
  return true;
}

bool GraphMutator::ChangeDescriptor(Graph& graph, std::string& did) {
  Node& node = graph.node(AnyNode(graph));
  std::vector<TensorDesc>& descs =
      node.inputs.empty() || dice_.Chance(50) ? node.output_descs : node.input_descs;
  if (descs.empty()) return false;
  TensorDesc& desc = descs[static_cast<size_t>(dice_.Below(static_cast<int64_t>(descs.size())))];
  const int64_t choice = dice_.Below(5);
  if (choice == 0) desc.dtype = static_cast<DataType>(dice_.Below(43));
  if (choice == 1) desc.shape = std::nullopt;
  if (choice == 2) desc.layout = dice_.Chance(50) ? "NCHW" : "FRACTAL_NZ";
  if (choice == 3) desc.name = dice_.Chance(50) ? "x" : "nobody";
  if (choice == 4) {
    Extents dims = desc.shape ? desc.shape->dims() : Extents();
    dims.push_back(std::max<int64_t>(-2, Extreme()));
    if (!Shape(dims).Check().ok()) return false;
    desc.shape = Shape(dims);
  }
  did += fmt::format("descriptor {} of {}; ", choice, node.name);
  return true;
}

bool GraphMutator::ChangeType(Graph& graph, std::string& did) {
  Node& node = graph.node(AnyNode(graph));
  if (node.type == "NetOutput") return false;
  const std::string type = dice_.Pick(types_);
  did += fmt::format("{} becomes {}; ", node.name, type);
  node.type = type;
  return true;
}

bool GraphMutator::CopyNode(Graph& graph, std::string& did) {
  Node copy = graph.node(AnyNode(graph));
  if (copy.type == "NetOutput") return false;
  copy.name += "_again";
  did += fmt::format("{}; ", copy.name);
  return graph.Add(std::move(copy)).ok();
}

bool GraphMutator::DropNode(Graph& graph, std::string& did) {
  Graph changed = graph;
  const NodeId id = AnyNode(graph);
  const std::string name = graph.node(id).name;
  if (graph.node(id).type == "NetOutput") return false;
  for (const Node& reader : graph.nodes()) {
    Node& node = changed.node(reader.id);
    for (std::optional<Value>& input : node.inputs) {
      if (input && input->node == id) input = std::nullopt;
    }
    node.controls.erase(std::remove(node.controls.begin(), node.controls.end(), id),
                        node.controls.end());
  }
  changed.Remove(id);
  if (!Keep(graph, std::move(changed))) return false;
  did += fmt::format("without {}; ", name);
  return true;
}

bool GraphMutator::AddControl(Graph& graph, std::string& did) {
  Graph changed = graph;
  const NodeId before = AnyNode(graph), after = AnyNode(graph);
  changed.node(after).controls.push_back(before);
  if (!Keep(graph, std::move(changed))) return false;
  did += fmt::format("{} before {}; ", graph.node(before).name, graph.node(after).name);
  return true;
}

}  // namespace npumesh::fuzz
