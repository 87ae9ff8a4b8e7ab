#include "graph/ir/graph_builder.h"

#include "graph/ir/node_draft.h"
#include "graph/ir/node_kind.h"

namespace npumesh {
namespace {

// As TorchAir declares intermediates; inference decides.
constexpr DataType kDeclared = DataType::kFloat;

void Describe(const TensorType& type, TensorDesc& desc) {
  desc.dtype = type.dtype;
  desc.shape = type.shape;
}

Node DataNode(std::string name, std::string type, const TensorType& tensor, int64_t index) {
  Node node = MakeNode({.type = std::move(type),
                        .name = std::move(name),
                        .attrs = {{"index", AttrValue::Int(index)}}});
  node.inputs.emplace_back();  // a Data node has one port and no producer
  node.input_descs.emplace_back().name = "x";
  for (TensorDesc* desc : {&node.input_descs[0], &node.output_descs[0]}) {
    Describe(tensor, *desc);
    desc->device_type = "NPU";
  }
  return node;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name) {
  model_.graph.set_name(std::move(name));
}

Value GraphBuilder::AddNode(Node node) {
  node.name = UniqueName(node.name.empty() ? node.type : node.name);
  Result<NodeId> id = model_.graph.Add(std::move(node));
  return {id.value(), 0};  // the name is unique
}

std::string GraphBuilder::UniqueName(std::string_view base) {
  return FreshName(model_.graph, base);
}

Value GraphBuilder::Data(std::string name, TensorType type) {
  return AddNode(DataNode(std::move(name), "Data", type, next_index_++));
}

Value GraphBuilder::RefData(std::string name, TensorType type) {
  return AddNode(DataNode(std::move(name), "RefData", type, next_index_++));
}

Value GraphBuilder::Const(std::string name, const Tensor& value) {
  return AddNode(MakeConst(std::move(name), value));
}

Value GraphBuilder::FileConstant(std::string name, TensorType type, std::string file_path) {
  Node node = MakeNode({.type = "FileConstant",
                        .name = std::move(name),
                        .attrs = {{"shape", AttrValue::Ints(type.shape.dims())},
                                  {"dtype", AttrValue::Type(type.dtype)},
                                  {"file_path", AttrValue::String(std::move(file_path))},
                                  {"file_id", AttrValue::String("")}},
                        .dtype = kDeclared});
  node.output_descs[0].shape = Shape();
  return AddNode(std::move(node));
}

Value GraphBuilder::Op(std::string type, std::vector<Input> inputs, std::vector<Attr> attrs,
                       std::string name, int outputs) {
  NodeDraft draft = {.type = std::move(type),
                     .name = std::move(name),
                     .attrs = std::move(attrs),
                     .dtype = kDeclared};
  if (outputs != 1) draft.outputs.clear();
  for (int i = 0; outputs != 1 && i < outputs; ++i) draft.outputs.push_back(fmt::format("y{}", i));
  Node node = MakeNode(std::move(draft));
  for (Input& input : inputs) {
    const Value value = input.second;
    const bool known =
        value.node >= 0 && value.node < static_cast<NodeId>(model_.graph.nodes().size());
    if (!known && failure_.ok()) {
      failure_ = Error(Code::kInvalidArgument,
                       "node \"{}\" ({}): port \"{}\" is fed with a value of another builder",
                       node.name, node.type, input.first);
    }
    if (known) AddInput(model_.graph, std::move(input.first), value, node);
  }
  if (!modules_.empty() && !IsNetOutput(node)) {
    node.attrs.emplace("nn_module_stack", AttrValue::String(ModuleStack()));
  }
  return AddNode(std::move(node));
}

void GraphBuilder::Declare(Value value, DataType dtype) {
  std::vector<TensorDesc>& descs = model_.graph.node(value.node).output_descs;
  descs[static_cast<size_t>(value.port)].dtype = dtype;
}

void GraphBuilder::EnterModule(std::string name, std::string type) {
  modules_.push_back({std::move(name), std::move(type)});
}

void GraphBuilder::LeaveModule() {
  if (!modules_.empty()) {
    modules_.pop_back();
  } else if (failure_.ok()) {
    failure_ = Error(Code::kInvalidArgument, "graph \"{}\": LeaveModule without EnterModule",
                     model_.graph.name());
  }
}

// Python's str() of what FX records: {'L__self___layer_0': ("L['self'].layer[0]", <class 'T'>)}.
std::string GraphBuilder::ModuleStack() const {
  std::string text;
  std::string key = "L__self__";
  std::string path = "L['self']";
  for (const Module& module : modules_) {
    key += "_";
    for (const char c : module.name) {
      if (c != ']') key += c == '[' || c == '.' ? '_' : c;
    }
    path += "." + module.name;
    text += fmt::format("{}'{}': (\"{}\", <class '{}'>)", text.empty() ? "" : ", ", key, path,
                        module.type);
  }
  return "{" + text + "}";
}

void GraphBuilder::Runs(Value value, std::vector<Model> models) {
  std::vector<std::string>& names = model_.graph.node(value.node).subgraphs;
  for (Model& model : models) {
    names.push_back(model.graph.name());
    model_.subgraphs.push_back(std::move(model.graph));
    for (Graph& graph : model.subgraphs) model_.subgraphs.push_back(std::move(graph));
  }
}

void GraphBuilder::Order(Value before, Value after) {
  model_.graph.node(after.node).controls.push_back(before.node);
}

Value GraphBuilder::Ints(std::vector<int64_t> values, std::string name) {
  const TensorType type{DataType::kInt64, Shape({static_cast<int64_t>(values.size())})};
  return Const(name.empty() ? "Const" : std::move(name), Tensor::FromVector(type, values));
}

Value GraphBuilder::Int(int64_t value, std::string name) {
  return Const(name.empty() ? "Const" : std::move(name),
               Tensor::FromVector<int64_t>({DataType::kInt64, Shape()}, {value}));
}

void GraphBuilder::Output(std::vector<Value> values) {
  if (has_output_ && failure_.ok()) {
    failure_ =
        Error(Code::kInvalidArgument, "graph \"{}\": Output was called twice", model_.graph.name());
  }
  has_output_ = true;
  std::vector<Input> inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    inputs.emplace_back(fmt::format("input{}", i), values[i]);
  }
  Op("NetOutput", std::move(inputs), {}, "NetOutput", 0);
}

Result<Model> GraphBuilder::Build() {
  if (failure_.ok() && !has_output_) {
    failure_ = Error(Code::kInvalidArgument, "graph \"{}\": no Output", model_.graph.name());
  }
  NPUMESH_RETURN_IF_ERROR(failure_);
  NPUMESH_RETURN_IF_ERROR(model_.graph.Verify());
  Model built = std::move(model_);
  *this = GraphBuilder();
  return built;
}

void DropModuleStacks(Model& model) {
  const auto drop = [](Graph& graph) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      graph.node(static_cast<NodeId>(i)).attrs.erase("nn_module_stack");
    }
  };
  drop(model.graph);
  for (Graph& graph : model.subgraphs) drop(graph);
}

}  // namespace npumesh
