#include "graph/engine/compiler.h"

#include <algorithm>
#include <cstring>

#include "graph/engine/stage_graph.h"
#include "graph/ir/node_kind.h"
#include "graph/ops/core/in_place.h"
#include "graph/passes/analysis/node_error.h"
#include "graph/passes/analysis/operator_check.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/analysis/value_flow.h"
#include "graph/passes/schedule/execution_order.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

bool SameSize(const TensorType& a, const TensorType& b) {
  return a.bytes() == b.bytes() && a.shape.elements() == b.shape.elements();
}

std::unique_ptr<Kernel> CopyKernel(uint64_t bytes) {
  return MakeKernel([bytes](const KernelArgs& args) {
    if (bytes > 0) std::memcpy(args.out[0], args.in[0], bytes);
    return Status();
  });
}

// NetOutput descriptors are true where they say something. Without dimensions the dtype may be the
// FLOAT that writers put where they know nothing.
bool Contradicts(const TensorDesc& declared, const TensorType& inferred) {
  if (!declared.shape) return false;
  if (declared.dtype != DataType::kUndefined && declared.dtype != inferred.dtype) return true;
  const Shape& shape = *declared.shape;
  if (!shape.has_rank()) return false;
  if (shape.rank() != inferred.shape.rank()) return true;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != kUnknownDim && shape[i] != inferred.shape[i]) return true;
  }
  return false;
}

}  // namespace

Compiler::Compiler(const Model& model, const OpRegistry& registry, GroupProvider* groups,
                   const CompileOptions& options)
    : model_(model),
      graph_(model.graph),
      options_(options),
      bound_(model.graph, registry),
      inference_(bound_,
                 {groups, options.threads,
                  options.weights != nullptr ? &options.weights->packed() : nullptr,
                  shares_parts() && options.static_parts->chosen() ? &options.static_parts->memory()
                                                                   : nullptr}),
      groups_(groups),
      result_(new CompiledModel()) {
  result_->source_ = &model;
}

Result<std::unique_ptr<CompiledModel>> Compiler::Run(const std::vector<TensorType>& input_types,
                                                     const std::vector<Tensor>& values) {
  if (options_.observer) options_.observer("PreRunBegin", model_);
  needed_ = Needed(nullptr);
  NPUMESH_RETURN_IF_ERROR(CheckOperators(bound_, needed_));
  NPUMESH_RETURN_IF_ERROR(TakeInputs(input_types, values, needed_));
  NPUMESH_ASSIGN_OR_RETURN(order_, Order());
  NPUMESH_RETURN_IF_ERROR(FindStaticOperators());
  WeightCache& weights = options_.weights != nullptr ? *options_.weights : own_weights_;
  NPUMESH_RETURN_IF_ERROR(inference_.Run(order_, inputs_, weights, model_.path));
  if (options_.observer) {
    options_.observer("AfterInfershape", TypedGraph(model_, inference_, order_));
  }
  needed_ = Needed([this](Value value) { return Replaced(value); });
  NPUMESH_RETURN_IF_ERROR(CheckProducers());
  NPUMESH_RETURN_IF_ERROR(ObserveOptimized());
  FindFusions();
  UseParts();
  NPUMESH_RETURN_IF_ERROR(MakeSteps());
  NPUMESH_RETURN_IF_ERROR(TakeOutputs());
  AssignStreams();
  AssignAddresses();
  MarkConstants();
  if (options_.observer) options_.observer("Build", BuiltGraph());
  return std::move(result_);
}

Result<std::vector<NodeId>> Compiler::Order() const {
  const bool overlap = options_.overlap_collectives && !options_.spare_memory;
  return ExecutionOrder(bound_, needed_, options_.order, overlap);
}

std::vector<bool> Compiler::Needed(const std::function<bool(Value)>& known) const {
  return NeededNodes(bound_, known, options_.dead_nodes());
}

Status Compiler::CheckProducers() const {
  for (const NodeId id : Kept(order_)) {
    for (const std::optional<Value>& input : graph_.node(id).inputs) {
      if (!input || needed_[static_cast<size_t>(input->node)] || Folded(*input)) continue;
      return AtNode(graph_.node(id), Error(Code::kInternal, "nobody computes output {} of \"{}\"",
                                           input->port, graph_.node(input->node).name));
    }
  }
  return Status();
}

bool Compiler::Folded(Value value) const {
  if (inference_.constant(value) == nullptr) return false;
  const Node& node = graph_.node(value.node);
  return options_.fold_constants || IsWeightNode(node) || IsShapeQuery(bound_, value.node);
}

bool Compiler::Replaced(Value value) const {
  return bound_.op(value.node) != nullptr && Folded(value);
}

std::vector<NodeId> Compiler::Kept(const std::vector<NodeId>& order) const {
  std::vector<NodeId> kept;
  for (const NodeId id : order) {
    if (needed_[static_cast<size_t>(id)]) kept.push_back(id);
  }
  return kept;
}

Status Compiler::ObserveOptimized() const {
  if (!options_.observer) return Status();
  const Model typed = TypedGraph(model_, inference_, order_);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> file_order, graph_.StableOrder());
  options_.observer("PreRunAfterOptimizeOriginalGraph", OptimizedGraph(typed, file_order));
  options_.observer("PreRunAfterOptimizeGraphBeforeBuild", OptimizedGraph(typed, order_));
  return Status();
}

Model Compiler::OptimizedGraph(const Model& typed, const std::vector<NodeId>& order) const {
  return KeptGraph(typed, Kept(order), [this](Value value) {
    return Replaced(value) ? inference_.constant(value) : nullptr;
  });
}

Model Compiler::BuiltGraph() const {
  Model built = OptimizedGraph(TypedGraph(model_, inference_, order_), order_);
  for (const Step& step : result_->steps_) {
    const NodeId id = built.graph.Find(step.name);
    if (id == kNoNode) continue;
    std::vector<int64_t> offsets;
    for (const Address& output : step.outputs) {
      offsets.push_back(static_cast<int64_t>(output.offset));
    }
    built.graph.node(id).attrs.insert_or_assign("output_i", AttrValue::Ints(std::move(offsets)));
  }
  for (const auto& [id, fused] : fused_by_node_) {
    const std::string& step = graph_.node(fused->nodes.back()).name;
    Node& node = built.graph.node(built.graph.Find(graph_.node(id).name));
    if (node.name != step) node.attrs.insert_or_assign("_fused_into", AttrValue::String(step));
  }
  return built;
}

Status Compiler::TakeInputs(const std::vector<TensorType>& input_types,
                            const std::vector<Tensor>& values, const std::vector<bool>& needed) {
  NPUMESH_ASSIGN_OR_RETURN(result_->inputs_, InputsOf(model_));
  NPUMESH_RETURN_IF_ERROR(CheckInputTypes(result_->inputs_, input_types));
  result_->input_types_ = input_types;
  result_->value_dependent_.assign(input_types.size(), false);
  const std::vector<bool> deciding = ShapeDecidingInputs(bound_, needed);
  const std::vector<NodeId> nodes = graph_.DataNodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    positions_[nodes[i]] = static_cast<int>(i);
    Inference::Input& input = inputs_[nodes[i]];
    input.type = input_types[i];
    if (!deciding[static_cast<size_t>(nodes[i])] || i >= values.size()) continue;
    if (values[i].dtype() == DataType::kUndefined) continue;
    if (values[i].type() != input.type) {
      return Error(Code::kInvalidArgument, "input \"{}\": its type is {}, but its value is {}",
                   result_->inputs_[i].name, input.type.ToString(), values[i].type().ToString());
    }
    if (input.type.bytes() > kMaxShapeValueBytes) continue;
    input.value = values[i];
    result_->value_dependent_[i] = true;
  }
  return Status();
}

void Compiler::FindFusions() {
  if (!options_.fuses) return;
  const std::vector<NodeId> kept = Kept(order_);
  const FusionInput input = {
      bound_, kept, [this](NodeId id) -> const OpContext& { return inference_.context(id); },
      [this](Value value) { return Replaced(value); }};
  fused_ = Fuse(input, options_.fuses);
  for (const FusedStep& fused : fused_) {
    for (const NodeId id : fused.nodes) fused_by_node_[id] = &fused;
  }
}

Status Compiler::MakeSteps() {
  ErrorList errors;
  for (UsedPart& used : used_parts_) {
    if (!used.part->compiled) CompilePart(used, errors);
  }
  for (const NodeId id : Kept(order_)) {
    if (UsedPart* const used = PartOf(id)) {
      TakePartStep(*used, id);
    } else if (const Status status = MakeStepOf(id); !status.ok()) {
      errors.Add(AtNode(graph_.node(id), status));
    }
  }
  return errors.Join(fmt::format("graph \"{}\" cannot be compiled", graph_.name()));
}

Status Compiler::MakeStepOf(NodeId id) {
  if (const auto fused = fused_by_node_.find(id); fused != fused_by_node_.end()) {
    return id == fused->second->nodes.back() ? MakeFusedStep(*fused->second) : Status();
  }
  const Operator* op = bound_.op(id);
  if (op == nullptr || op->view || (inference_.folded(id) && Replaced({id, 0}))) return Status();
  return MakeStep(id);
}

Status Compiler::MakeStep(NodeId id) {
  const Operator& op = *bound_.op(id);
  const OpContext& context = inference_.context(id);
  std::vector<std::optional<Value>> inputs;
  std::vector<PlanIndex> slots;
  for (int slot = 0; slot < context.slots(); ++slot) {
    inputs.push_back(bound_.SlotValue(id, slot));
    slots.push_back(inputs.back() ? IndexOf(*inputs.back()) : -1);
  }
  CopyOverwrittenConstants(id, slots);
  Step& step = result_->steps_.emplace_back();
  Describe(id, step);
  PlanStep plan;
  for (const PlanIndex index : slots) {
    if (index >= 0) plan.reads.push_back(index);
  }
  if (op.elementwise && op.in_place.empty() && context.outputs() == 1) {
    plan.may_take_over = TakeOverCandidates(step, slots);
  }
  for (int port = 0; port < context.outputs(); ++port) {
    plan.writes.push_back(AddOutput(id, port, slots));
  }
  for (const InPlace& in_place : InPlacesOf(op, context)) {
    const PlanIndex target = slots[static_cast<size_t>(in_place.slot)];
    if (in_place.output >= context.outputs() && target >= 0) plan.updates.push_back(target);
  }
  plan_steps_.push_back(std::move(plan));
  step_slots_.push_back(std::move(slots));
  return TakeKernel(op.make_kernel(context), inputs, step);
}

Status Compiler::MakeFusedStep(const FusedStep& fused) {
  const NodeId id = fused.nodes.back();
  std::vector<PlanIndex> slots;
  PlanStep plan;
  Step& step = result_->steps_.emplace_back();
  step.node = id;
  step.name = graph_.node(id).name;
  step.type = fused.type;
  step.output_types = {inference_.context(id).out(0)};
  for (const std::optional<Value>& value : fused.inputs) {
    slots.push_back(value ? IndexOf(*value) : -1);
    if (value) plan.reads.push_back(slots.back());
    step.input_types.push_back(value ? inference_.type(*value) : TensorType());
    step.input_ports.push_back(-1);
  }
  if (fused.elementwise) plan.may_take_over = TakeOverCandidates(step, slots);
  plan.writes = {AddOutput(id, 0, slots)};
  plan_steps_.push_back(std::move(plan));
  step_slots_.push_back(std::move(slots));
  return TakeKernel(fused.make_kernel(), fused.inputs, step);
}

void Compiler::Describe(NodeId id, Step& step) const {
  const OpContext& context = inference_.context(id);
  step.node = id;
  step.name = context.node().name;
  step.type = context.node().type;
  step.collective = bound_.op(id)->collective.has_value();
  for (int slot = 0; slot < context.slots(); ++slot) {
    step.input_types.push_back(context.in(slot));
    step.input_ports.push_back(context.input_index(slot));
  }
  for (int i = 0; i < context.outputs(); ++i) step.output_types.push_back(context.out(i));
}

Status Compiler::TakeKernel(Result<std::unique_ptr<Kernel>> kernel,
                            const std::vector<std::optional<Value>>& inputs, Step& step) {
  NPUMESH_ASSIGN_OR_RETURN(step.kernel, std::move(kernel));
  for (size_t slot = 0; slot < inputs.size() && options_.weights != nullptr; ++slot) {
    const Tensor* const value = inputs[slot] ? inference_.constant(*inputs[slot]) : nullptr;
    if (value != nullptr && !step.kernel->reads(static_cast<int>(slot))) {
      options_.weights->Arrived(*value);
    }
  }
  result_->scratch_bytes_ = std::max(result_->scratch_bytes_, step.kernel->scratch_bytes());
  return Status();
}

Compiler::PlanIndex Compiler::AddOutput(NodeId id, int port, const std::vector<PlanIndex>& slots) {
  PlanValue value;
  value.bytes = inference_.context(id).out(port).bytes();
  Address address{Address::Kind::kArena};
  for (const InPlace& in_place : InPlacesOf(*bound_.op(id), inference_.context(id))) {
    if (in_place.output != port) continue;
    const PlanIndex target = slots[static_cast<size_t>(in_place.slot)];
    if (target < 0) continue;
    value.same_as = target;
    value.external = values_[static_cast<size_t>(target)].external;
    address = addresses_[static_cast<size_t>(target)];
  }
  const PlanIndex index = AddValue(value, address);
  index_[{id, port}] = index;
  return index;
}

void Compiler::CopyOverwrittenConstants(NodeId id, std::vector<PlanIndex>& slots) {
  for (const InPlace& in_place : InPlacesOf(*bound_.op(id), inference_.context(id))) {
    PlanIndex& target = slots[static_cast<size_t>(in_place.slot)];
    if (target < 0 || addresses_[static_cast<size_t>(target)].kind != Address::Kind::kConstant) {
      continue;
    }
    const TensorType& type = inference_.context(id).in(in_place.slot);
    PlanValue value;
    value.bytes = type.bytes();
    const PlanIndex copy = AddValue(value, {Address::Kind::kArena});
    Step& step = result_->steps_.emplace_back();
    step.node = id;
    step.name = graph_.node(id).name + "/copy";
    step.type = "TensorMove";
    step.kernel = CopyKernel(value.bytes);
    step.input_types = {type};
    step.output_types = {type};
    step.input_ports = {inference_.context(id).input_index(in_place.slot)};
    plan_steps_.push_back({{target}, {copy}, {}, -1, {}});
    step_slots_.push_back({target});
    target = copy;
  }
}

std::vector<Compiler::PlanIndex> Compiler::TakeOverCandidates(
    const Step& step, const std::vector<PlanIndex>& slots) const {
  std::vector<PlanIndex> candidates;
  for (const PlanIndex candidate : slots) {
    if (candidate < 0) continue;
    bool fits = true;
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      const PlanIndex other = slots[slot];
      if (other < 0 || StorageOf(other) != StorageOf(candidate)) continue;
      fits = fits && SameSize(step.input_types[slot], step.output_types[0]);
    }
    if (fits) candidates.push_back(candidate);
  }
  return candidates;
}

Status Compiler::TakeOutputs() {
  const NodeId sink = graph_.NetOutput();
  if (sink == kNoNode) {
    return Error(Code::kCorrupt, "graph \"{}\" has no NetOutput", graph_.name());
  }
  const Node& node = graph_.node(sink);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) {
      return AtNode(node, Error(Code::kCorrupt, "graph output {} is not connected", i));
    }
    const Value value = *node.inputs[i];
    const TensorType& inferred = inference_.type(value);
    const TensorDesc& declared = node.input_descs[i];
    // A FileConstant's descriptor, from which writers copy this one, means nothing.
    const bool trusted = !IsFileConstant(graph_.node(value.node));
    if (trusted && Contradicts(declared, inferred)) {
      const TensorType expected{declared.dtype, *declared.shape};
      return AtNode(node, Error(Code::kInvalidArgument,
                                "graph output {} (output {} of \"{}\"): the file declares {}, "
                                "inferred {}",
                                i, value.port, graph_.node(value.node).name, expected.ToString(),
                                inferred.ToString()));
    }
    output_index_.push_back(IndexOf(value));
    values_[static_cast<size_t>(output_index_.back())].output = true;
    result_->output_types_.push_back(inferred);
  }
  return Status();
}

Compiler::PlanIndex Compiler::IndexOf(Value value) {
  // Outputs of steps are known before they are read: what is unknown is a view.
  std::vector<Value> views;
  PlanIndex index = FindOrAddSource(value);
  while (index < 0) {
    views.push_back(value);
    value = *bound_.StorageSource(value);
    index = FindOrAddSource(value);
  }
  for (; !views.empty(); views.pop_back()) {
    PlanValue view = values_[static_cast<size_t>(index)];
    view.same_as = index;
    index = AddValue(view, addresses_[static_cast<size_t>(index)]);
    index_[views.back()] = index;
  }
  return index;
}

Compiler::PlanIndex Compiler::FindOrAddSource(Value value) {
  const auto known = index_.find(value);
  if (known != index_.end()) return known->second;
  if (Folded(value)) return index_[value] = AddConstant(*inference_.constant(value));
  if (making_ != nullptr &&
      !std::binary_search(making_->nodes_by_id.begin(), making_->nodes_by_id.end(), value.node)) {
    return index_[value] = AddOutside(value);
  }
  if (IsInputNode(graph_.node(value.node))) return index_[value] = AddInput(value.node);
  return -1;
}

Compiler::PlanIndex Compiler::AddValue(const PlanValue& value, Address address) {
  values_.push_back(value);
  addresses_.push_back(address);
  return static_cast<PlanIndex>(values_.size()) - 1;
}

Compiler::PlanIndex Compiler::StorageOf(PlanIndex index) const {
  while (values_[static_cast<size_t>(index)].same_as >= 0) {
    index = values_[static_cast<size_t>(index)].same_as;
  }
  return index;
}

Compiler::PlanIndex Compiler::AddConstant(const Tensor& tensor) {
  const auto [known, added] = constant_index_.try_emplace({tensor.data(), tensor.bytes()}, -1);
  if (!added) return known->second;
  PlanValue value;
  value.bytes = tensor.bytes();
  value.external = true;
  known->second = AddValue(value, {Address::Kind::kConstant, result_->constants_.size()});
  result_->constants_.push_back(tensor);
  return known->second;
}

Compiler::PlanIndex Compiler::AddInput(NodeId id) {
  const int position = positions_.at(id);
  PlanValue value;
  value.bytes = inputs_.at(id).type.bytes();
  value.external = true;
  return AddValue(value, {Address::Kind::kInput, static_cast<uint64_t>(position)});
}

}  // namespace npumesh
