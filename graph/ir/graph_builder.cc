#include "graph/ir/graph_builder.h"

#include "graph/ir/node_kind.h"

namespace npumesh {
namespace {

TensorDesc PortDesc(std::string name) {
  TensorDesc desc;
  desc.name = std::move(name);
  desc.dtype = DataType::kFloat;  // what TorchAir writes for intermediates; inference decides
  return desc;
}

TensorDesc PortDesc(std::string name, const TensorType& type) {
  TensorDesc desc = PortDesc(std::move(name));
  desc.dtype = type.dtype;
  desc.shape = type.shape;
  return desc;
}

Node DataNode(std::string name, std::string type, const TensorType& tensor, int64_t index) {
  Node node;
  node.name = std::move(name);
  node.type = std::move(type);
  node.inputs.emplace_back();  // a Data node has one port and no producer
  node.input_descs.push_back(PortDesc("x", tensor));
  node.output_descs.push_back(PortDesc("y", tensor));
  for (TensorDesc* desc : {&node.input_descs[0], &node.output_descs[0]}) desc->device_type = "NPU";
  node.attrs.emplace("index", AttrValue::Int(index));
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
  std::string name(base);
  for (int i = 1; model_.graph.Find(name) != kNoNode; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

Value GraphBuilder::Data(std::string name, TensorType type) {
  return AddNode(DataNode(std::move(name), "Data", type, next_index_++));
}

Value GraphBuilder::RefData(std::string name, TensorType type) {
  return AddNode(DataNode(std::move(name), "RefData", type, next_index_++));
}

Value GraphBuilder::Const(std::string name, const Tensor& value) {
  Node node;
  node.name = std::move(name);
  node.type = "Const";
  node.output_descs.push_back(PortDesc("y", value.type()));
  node.attrs.emplace("value", AttrValue::Value(value));
  return AddNode(std::move(node));
}

Value GraphBuilder::FileConstant(std::string name, TensorType type, std::string file_path) {
  Node node;
  node.name = std::move(name);
  node.type = "FileConstant";
  node.output_descs.push_back(PortDesc("y"));
  node.output_descs[0].shape = Shape();
  node.attrs.emplace("shape", AttrValue::Ints(type.shape.dims()));
  node.attrs.emplace("dtype", AttrValue::Type(type.dtype));
  node.attrs.emplace("file_path", AttrValue::String(std::move(file_path)));
  node.attrs.emplace("file_id", AttrValue::String(""));
  return AddNode(std::move(node));
}

Value GraphBuilder::Op(std::string type, std::vector<Input> inputs, std::vector<Attr> attrs,
                       std::string name, int outputs) {
  Node node;
  node.name = std::move(name);
  node.type = std::move(type);
  for (Input& input : inputs) {
    const Value value = input.second;
    const bool known =
        value.node >= 0 && value.node < static_cast<NodeId>(model_.graph.nodes().size());
    if (!known && failure_.ok()) {
      failure_ = Error(Code::kInvalidArgument,
                       "node \"{}\" ({}): port \"{}\" is fed with a value of another builder",
                       node.name, node.type, input.first);
    }
    if (!known) continue;
    // As TorchAir does, an input descriptor starts as a copy of its producer's output descriptor.
    const std::vector<TensorDesc>& sources = model_.graph.node(value.node).output_descs;
    TensorDesc desc = static_cast<size_t>(value.port) < sources.size()
                          ? sources[static_cast<size_t>(value.port)]
                          : PortDesc("");
    desc.name = std::move(input.first);
    node.inputs.emplace_back(value);
    node.input_descs.push_back(std::move(desc));
  }
  for (int i = 0; i < outputs; ++i) {
    node.output_descs.push_back(PortDesc(outputs == 1 ? "y" : fmt::format("y{}", i)));
  }
  for (Attr& attr : attrs) node.attrs.emplace(std::move(attr.first), std::move(attr.second));
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
