#include "graph/acl_model/operator_shelf.h"

#include <algorithm>

#include "graph/io/layout.h"
#include "graph/io/model_file.h"
#include "graph/ir/node_kind.h"
#include "graph/offline/offline_compile.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session_config.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// ---- Calls in the words of graphs ----

std::string LayoutOf(aclFormat format) {
  return format == ACL_FORMAT_UNDEFINED ? "ND" : LayoutName(format);
}

Result<Tensor> ValueOf(const TensorType& type, const std::vector<std::byte>& bytes) {
  if (BitsOf(type.dtype) == 0 || !type.shape.is_static()) {
    return Error(Code::kInvalidArgument, "a constant of type {}; expected fixed widths and sizes",
                 type);
  }
  NPUMESH_RETURN_IF_ERROR(type.shape.Check());
  const auto needed = BytesOf(type.dtype, static_cast<uint64_t>(type.shape.elements()));
  if (!needed || bytes.size() < *needed) {
    return Error(Code::kInvalidArgument, "a constant {} has {} bytes, {} are given", type,
                 needed.value_or(0), bytes.size());
  }
  return Tensor::FromString(
      type, std::string(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(*needed)));
}

Result<OperatorTensor> TensorOf(const CallTensor& given) {
  OperatorTensor tensor;
  if (given.absent()) return tensor;
  const auto dtype = DataTypeFromRuntime(given.dtype);
  if (!dtype || *dtype == DataType::kUndefined) {
    return Error(Code::kInvalidArgument, "data type {} is not known",
                 static_cast<int>(given.dtype));
  }
  tensor.type = {*dtype, Shape(given.dims)};
  tensor.layout = LayoutOf(given.format);
  tensor.origin_shape = Shape(given.origin_dims);
  if (given.origin_format != ACL_FORMAT_UNDEFINED) {
    tensor.origin_layout = LayoutOf(given.origin_format);
  }
  tensor.name = given.name;
  tensor.list = given.list;
  if (given.value != nullptr) {
    NPUMESH_ASSIGN_OR_RETURN(tensor.value, ValueOf(tensor.type, *given.value));
  }
  return tensor;
}

Result<std::vector<OperatorTensor>> TensorsOf(const OperatorCall& call, const char* side,
                                              const std::vector<CallTensor>& given) {
  std::vector<OperatorTensor> tensors;
  for (size_t i = 0; i < given.size(); ++i) {
    Result<OperatorTensor> tensor = TensorOf(given[i]);
    if (!tensor.ok()) {
      return tensor.status().WithContext(fmt::format("operator {}: {} {}", call.type, side, i));
    }
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

struct AttrMaker {
  AttrValue operator()(bool value) const { return AttrValue::Bool(value); }
  AttrValue operator()(int64_t value) const { return AttrValue::Int(value); }
  AttrValue operator()(float value) const { return AttrValue::Float(value); }
  AttrValue operator()(const std::string& value) const { return AttrValue::String(value); }
  AttrValue operator()(aclDataType value) const { return AttrValue::Variant(DataTypeAttr{value}); }
  AttrValue operator()(const std::vector<bool>& values) const { return AttrValue::Bools(values); }
  AttrValue operator()(const std::vector<int64_t>& values) const { return AttrValue::Ints(values); }
  AttrValue operator()(const std::vector<float>& values) const { return AttrValue::Floats(values); }
  AttrValue operator()(const std::vector<std::string>& values) const {
    return AttrValue::Strings(values);
  }
  AttrValue operator()(const std::vector<aclDataType>& values) const {
    ListAttr list;
    list.kind = ListKind::kDataType;
    for (const aclDataType value : values) list.dt.push_back(static_cast<DataType>(value));
    return AttrValue::Variant(std::move(list));
  }
  AttrValue operator()(const std::vector<std::vector<int64_t>>& values) const {
    return AttrValue::Variant(ListListInt{values});
  }
};

// As on a card, attributes that the operator does not have are passed over: clients set some that
// only other releases know.
void DropForeignAttrs(SingleOperator* single) {
  const Operator* const op = BuiltinOps().Find(single->type);
  if (op == nullptr) return;
  const std::vector<AttrSpec>& known = op->schema.attrs;
  std::erase_if(single->attrs, [&](const auto& attr) {
    const bool foreign = !attr.first.starts_with("_") &&
                         std::none_of(known.begin(), known.end(), [&](const AttrSpec& spec) {
                           return spec.name == attr.first;
                         });
    if (foreign) {
      NPUMESH_WARNING_ONCE("operator {} has no attribute \"{}\"; it is passed over", single->type,
                           attr.first);
    }
    return foreign;
  });
}

// A description of an output tells how much memory there is; what lies in it is as the operator
// says. So only numbers of elements are compared (CheckOutputs).
void ForgetOutputShapes(Graph* graph) {
  for (TensorDesc& desc : graph->node(graph->NetOutput()).input_descs) {
    if (!IsPrivateLayout(LayoutNumber(desc.layout))) desc.shape.reset();
  }
  for (size_t i = 0; i < graph->nodes().size(); ++i) {
    Node& node = graph->node(static_cast<NodeId>(i));
    if (IsFurniture(node)) continue;
    for (TensorDesc& desc : node.output_descs) desc.shape.reset();
  }
}

Result<OperatorGraph> GraphOfCall(const OperatorCall& call) {
  NPUMESH_ASSIGN_OR_RETURN(SingleOperator single, SingleOf(call));
  DropForeignAttrs(&single);
  NPUMESH_ASSIGN_OR_RETURN(OperatorGraph graph, GraphOf(single, BuiltinOps()));
  ForgetOutputShapes(&graph.model.graph);
  return graph;
}

// `types`: what the operator gives, of the outputs that `outputs` numbers.
Status CheckOutputs(const OperatorCall& call, const std::vector<size_t>& outputs,
                    const std::vector<TensorType>& types) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const CallTensor& given = call.outputs[outputs[i]];
    const TensorType declared{DataTypeFromRuntime(given.dtype).value_or(DataType::kUndefined),
                              Shape(given.dims)};
    const bool fits =
        !declared.shape.is_static() || declared.shape.elements() == types[i].shape.elements();
    if (fits && declared.dtype == types[i].dtype) continue;
    return Error(Code::kMismatch,
                 "operator {}: output {} is described as {}, the operator gives {}", call.type,
                 outputs[i], declared, types[i]);
  }
  return Status();
}

// ---- Making ----

SessionOptions OptionsOf() {
  SessionOptions options = DefaultSessionOptions();
  options.ref_data = true;  // a session will have it so
  return options;
}

OfflineFacts FactsFor(const AclDevice& device) {
  OfflineFacts facts;
  facts.rank = device.world.rank();
  facts.ranks = device.world.size();
  return facts;
}

bool AllKnown(const std::vector<TensorType>& types) {
  return std::all_of(types.begin(), types.end(), [](const TensorType& type) {
    return type.dtype != DataType::kUndefined && type.shape.is_static();
  });
}

// A session that begins with the first run, on the thread of the stream: a program that calls an
// operator does not wait for what the device is at.
class OperatorModel final : public LoadedModel {
 public:
  OperatorModel(AclDevice& device, std::mutex& turn, ReadModel read)
      : device_(device), turn_(turn), told_(read.told), read_(std::move(read)) {}

  const ModelFacts& facts() const override { return told_; }

  Status Run(const std::vector<ModelBuffer>& inputs, std::vector<ModelBuffer>& outputs,
             const std::function<Result<void*>(uint64_t bytes)>& make) override {
    NPUMESH_RETURN_IF_ERROR(Begin());
    return session_->Run(inputs, outputs, make);
  }

 private:
  Status Begin() {
    const std::lock_guard lock(mutex_);
    if (session_ != nullptr) return Status();
    NPUMESH_ASSIGN_OR_RETURN(
        session_,
        SessionModel::Create(device_, turn_, read_, {.operator_alone = true, .ref_data = true}));
    read_ = ReadModel();
    return Status();
  }

  AclDevice& device_;
  std::mutex& turn_;
  const ModelFacts told_;
  std::mutex mutex_;  // guards what follows until it begins
  ReadModel read_;
  std::unique_ptr<LoadedModel> session_;
};

// What was made may say which implementation it is to be.
void TakeBookkeeping(const Model& from, Model* to) {
  for (const Node& node : from.graph.nodes()) {
    const NodeId same = IsFurniture(node) ? kNoNode : to->graph.Find(node.name);
    if (same == kNoNode) continue;
    for (const auto& [name, value] : node.attrs) {
      if (name.starts_with("_")) to->graph.node(same).attrs.insert_or_assign(name, value);
    }
  }
}

}  // namespace

Result<SingleOperator> SingleOf(const OperatorCall& call) {
  SingleOperator single;
  single.type = call.type;
  NPUMESH_ASSIGN_OR_RETURN(single.inputs, TensorsOf(call, "input", call.inputs));
  NPUMESH_ASSIGN_OR_RETURN(single.outputs, TensorsOf(call, "output", call.outputs));
  for (const auto& [name, value] : call.attrs) {
    single.attrs.emplace(name, std::visit(AttrMaker(), value));
  }
  return single;
}

Status OperatorShelf::Add(const ModelBytes& bytes) {
  NPUMESH_ASSIGN_OR_RETURN(ReadModel read, ReadModelBytes(bytes));
  if (!read.facts.single_operator) {
    return Error(Code::kInvalidArgument,
                 "{}: a model, not a single operator; aclmdlLoadFromFile loads models, and "
                 "`npumesh atc --singleop` makes operators",
                 bytes.path);
  }
  Put(std::move(read.model));
  return Status();
}

Status OperatorShelf::Compile(const AclDevice& device, const OperatorCall& call) {
  NPUMESH_ASSIGN_OR_RETURN(OperatorGraph graph, GraphOfCall(call));
  if (Find(graph.model) != nullptr) return Status();
  OfflineFacts facts = FactsFor(device);
  NPUMESH_RETURN_IF_ERROR(CompileOffline(OptionsOf(), &graph.model, &facts));
  Put(std::move(graph.model));
  return Status();
}

Result<MadeOperator> OperatorShelf::Make(AclDevice& device, std::mutex& turn,
                                         const OperatorCall& call) const {
  NPUMESH_ASSIGN_OR_RETURN(OperatorGraph graph, GraphOfCall(call));
  const std::shared_ptr<const Model> known = Find(graph.model);
  if (known == nullptr) {
    return Error(Code::kNotFound,
                 "operator {}: none was compiled for these tensors and attributes; "
                 "aclopCompileAndExecute or aclopCompile does, or `npumesh atc --singleop` and "
                 "aclopSetModelDir",
                 call.type);
  }
  TakeBookkeeping(*known, &graph.model);
  ReadModel read;
  read.facts = FactsFor(device);
  read.model = std::move(graph.model);
  NPUMESH_RETURN_IF_ERROR(CompileOffline(OptionsOf(), &read.model, &read.facts));
  if (read.facts.outputs.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                             OutputTypesOnPaper(OptionsOf(), read.model, read.facts));
    if (AllKnown(types)) read.facts.outputs = {types};
  }
  if (!read.facts.outputs.empty()) {
    NPUMESH_RETURN_IF_ERROR(CheckOutputs(call, graph.outputs, read.facts.outputs[0]));
  }
  NPUMESH_ASSIGN_OR_RETURN(read.told, FactsOf(read.model, read.facts));
  return MadeOperator{std::make_unique<OperatorModel>(device, turn, std::move(read)),
                      std::move(graph.inputs), std::move(graph.outputs)};
}

std::shared_ptr<const Model> OperatorShelf::Find(const Model& wanted) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_type_.find(wanted.graph.name());
  if (found == by_type_.end()) return nullptr;
  for (const auto& made : found->second) {
    if (Serves(*made, wanted, BuiltinOps())) return made;
  }
  return nullptr;
}

// The graph of an operator has its type as name.
void OperatorShelf::Put(Model model) {
  const std::string type = model.graph.name();
  const std::lock_guard lock(mutex_);
  by_type_[type].push_back(std::make_shared<const Model>(std::move(model)));
}

void OperatorShelf::Clear() {
  const std::lock_guard lock(mutex_);
  by_type_.clear();
}

Result<std::vector<ModelPort>> InferOperator(const OperatorCall& call) {
  NPUMESH_ASSIGN_OR_RETURN(OperatorGraph graph, GraphOfCall(call));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                           OutputTypesOnPaper(OptionsOf(), std::move(graph.model), {}));
  std::vector<ModelPort> ports(call.outputs.size());
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    ModelPort& port = ports[graph.outputs[i]];
    port.dtype = static_cast<aclDataType>(types[i].dtype);
    port.dims = types[i].shape.dims();
  }
  return ports;
}

Status WriteOperatorGraph(const OperatorCall& call, const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const OperatorGraph graph, GraphOfCall(call));
  return WriteFile(path, ToGeProtoText(graph.model), FileKind::kGraphDump);
}

}  // namespace npumesh
