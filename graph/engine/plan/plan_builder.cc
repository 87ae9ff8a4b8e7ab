#include "graph/engine/plan/plan_builder.h"

#include <algorithm>
#include <cstring>

#include "graph/engine/plan/static_parts.h"
#include "graph/engine/plan/step_cost.h"
#include "graph/ir/node_kind.h"
#include "graph/ir/node_origin.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/image/blocked_image.h"

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

}  // namespace

PlanBuilder::PlanBuilder(const GraphAnalysis& graph, PlanDraft& draft, const StaticPart* part)
    : graph_(graph),
      bound_(graph.bound()),
      inference_(graph.inference()),
      draft_(draft),
      part_(part) {}

Status PlanBuilder::AddStepOf(NodeId id) {
  if (const auto fused = graph_.fusion_of().find(id); fused != graph_.fusion_of().end()) {
    return id == fused->second->nodes.back() ? AddFusedStep(*fused->second) : Status();
  }
  const Operator* op = bound_.op(id);
  const bool known = inference_.folded(id) && graph_.Replaced({id, 0});
  return op == nullptr || op->view || known ? Status() : AddStep(id);
}

Status PlanBuilder::AddStep(NodeId id) {
  const OpContext& context = graph_.context(id);
  std::vector<std::optional<Value>> inputs;
  Slots slots;
  for (int slot = 0; slot < context.slots(); ++slot) {
    inputs.push_back(bound_.SlotValue(id, slot));
    slots.push_back(inputs.back() ? OperandOf(id, slot, *inputs.back()) : -1);
  }
  CopyOverwrittenConstants(id, slots);
  Step step = Describe(id);
  PlanStep plan = PlanOf(id, step, slots);
  const BlockedNode* const blocked = graph_.layouts().Find(id);
  const bool special = blocked != nullptr && blocked->make_kernel != nullptr;
  const auto make = [&] {
    return special ? blocked->make_kernel() : bound_.op(id)->make_kernel(context);
  };
  NPUMESH_RETURN_IF_ERROR(TakeKernel(Tuned(step, {id}, inputs, make), inputs, step));
  draft_.AddStep(std::move(step), std::move(plan), std::move(slots));
  return Status();
}

PlanStep PlanBuilder::PlanOf(NodeId id, Step& step, const Slots& slots) {
  const Operator& op = *bound_.op(id);
  const OpContext& context = graph_.context(id);
  PlanStep plan;
  for (const PlanIndex index : slots) {
    if (index >= 0) plan.reads.push_back(index);
  }
  if (op.axes.elementwise() && op.in_place.empty() && context.outputs() == 1) {
    plan.may_take_over = TakeOverCandidates(step, slots);
  }
  for (int port = 0; port < context.outputs(); ++port) {
    plan.writes.push_back(AddOutput(id, port, slots));
  }
  for (const InPlace& in_place : InPlacesOf(op, context)) {
    const PlanIndex target = slots[static_cast<size_t>(in_place.slot)];
    if (in_place.output < context.outputs() || target < 0) continue;
    plan.updates.push_back(target);
    step.updates.push_back(in_place.slot);
  }
  return plan;
}

Status PlanBuilder::AddFusedStep(const FusedStep& fused) {
  const NodeId id = fused.nodes.back();
  Slots slots;
  PlanStep plan;
  Step step;
  step.node = id;
  step.name = graph_.graph().node(id).name;
  step.type = fused.type;
  step.origin = NodeOrigin(graph_.graph().node(id));
  for (const NodeId each : fused.nodes) {
    step.flops += FlopsOf(*bound_.op(each), inference_.context(each));
  }
  for (const Value value : fused.outputs) {
    step.output_types.push_back(graph_.StoredType(value));
    if (value.node != id) ++step.others;
  }
  for (const std::optional<Value>& value : fused.inputs) {
    const auto [index, type] = value ? FusedOperand(fused, *value) : FusedInput();
    slots.push_back(index);
    if (value) plan.reads.push_back(index);
    step.input_types.push_back(type);
    step.input_ports.push_back(-1);
  }
  if (fused.elementwise) plan.may_take_over = TakeOverCandidates(step, slots);
  for (const Value value : fused.outputs) {
    plan.writes.push_back(AddOutput(value.node, value.port, slots));
  }
  NPUMESH_RETURN_IF_ERROR(
      TakeKernel(Tuned(step, fused.nodes, fused.inputs, fused.make_kernel), fused.inputs, step));
  draft_.AddStep(std::move(step), std::move(plan), std::move(slots));
  return Status();
}

Step PlanBuilder::Describe(NodeId id) const {
  const OpContext& context = graph_.context(id);
  Step step;
  step.node = id;
  step.name = context.node().name;
  step.type = context.node().type;
  step.origin = NodeOrigin(context.node());
  const std::optional<CollectiveTrait>& collective = bound_.op(id)->collective;
  step.collective = collective.has_value();
  step.only_communicates = collective && collective->pure;
  step.flops = FlopsOf(*bound_.op(id), inference_.context(id));
  for (int slot = 0; slot < context.slots(); ++slot) {
    step.input_types.push_back(context.in(slot));
    step.input_ports.push_back(context.input_index(slot));
  }
  for (int i = 0; i < context.outputs(); ++i) step.output_types.push_back(context.out(i));
  return step;
}

Result<std::unique_ptr<Kernel>> PlanBuilder::Tuned(const Step& step,
                                                   const std::vector<NodeId>& nodes,
                                                   const std::vector<std::optional<Value>>& inputs,
                                                   const KernelTuner::MakeKernel& make) const {
  KernelTuner* const tuner = graph_.options().tuner;
  if (tuner == nullptr) return make();
  TunableStep asked;
  for (const NodeId id : nodes) {
    const OpContext& context = graph_.context(id);
    if (!bound_.op(id)->view && !MayBeTuned(*bound_.op(id), context)) return make();
    asked.operators.push_back({bound_.op(id), &context});
  }
  asked.name = step.name;
  asked.type = step.type;
  asked.inputs = step.input_types;
  asked.outputs = step.output_types;
  for (const std::optional<Value>& input : inputs) {
    asked.constants.push_back(input ? inference_.constant(*input) : nullptr);
  }
  return tuner->Make(asked, make);
}

Status PlanBuilder::TakeKernel(Result<std::unique_ptr<Kernel>> kernel,
                               const std::vector<std::optional<Value>>& inputs, Step& step) {
  NPUMESH_ASSIGN_OR_RETURN(step.kernel, std::move(kernel));
  WeightCache* const weights = graph_.options().weights;
  for (size_t slot = 0; slot < inputs.size() && weights != nullptr; ++slot) {
    const Tensor* const value = inputs[slot] ? inference_.constant(*inputs[slot]) : nullptr;
    if (value != nullptr && !step.kernel->reads(static_cast<int>(slot))) weights->Arrived(*value);
  }
  draft_.scratch_bytes = std::max(draft_.scratch_bytes, step.kernel->scratch_bytes());
  return Status();
}

PlanIndex PlanBuilder::AddOutput(NodeId id, int port, const Slots& slots) {
  PlanValue value;
  value.bytes = graph_.context(id).out(port).bytes();
  Address address{Address::Kind::kArena};
  for (const InPlace& in_place : InPlacesOf(*bound_.op(id), inference_.context(id))) {
    if (in_place.output != port) continue;
    const PlanIndex target = slots[static_cast<size_t>(in_place.slot)];
    if (target < 0) continue;
    value.same_as = target;
    value.external = draft_.value(target).external;
    address = draft_.address(target);
  }
  const PlanIndex index = draft_.AddValue(value, address);
  (graph_.layouts().InBlocks({id, port}) ? draft_.blocks : draft_.index)[{id, port}] = index;
  return index;
}

PlanIndex PlanBuilder::OperandOf(NodeId id, int slot, Value value) {
  return graph_.layouts().ReadsBlocks(id, slot) ? BlocksOf(value) : IndexOf(value);
}

// Those of its nodes that read a value read it in one layout.
PlanBuilder::FusedInput PlanBuilder::FusedOperand(const FusedStep& fused, Value value) {
  for (const NodeId id : fused.nodes) {
    const OpContext& context = graph_.context(id);
    for (int slot = 0; slot < context.slots(); ++slot) {
      if (!graph_.layouts().ReadsBlocks(id, slot) || bound_.SlotValue(id, slot) != value) continue;
      return {BlocksOf(value), context.in(slot)};
    }
  }
  return {IndexOf(value), inference_.type(value)};
}

PlanIndex PlanBuilder::BlocksOf(Value value) {
  const auto known = draft_.blocks.find(value);
  if (known != draft_.blocks.end()) return known->second;
  const PlanIndex index = graph_.Folded(value)
                              ? draft_.AddConstant(graph_.layouts().Constant(value))
                              : Reorder(value, true, IndexOf(value));
  return draft_.blocks[value] = index;
}

PlanIndex PlanBuilder::Reorder(Value value, bool into_blocks, PlanIndex from) {
  const TensorType& image = inference_.type(value);
  const TensorType blocks = {image.dtype, InBlocks(image.shape)};
  const Node& node = graph_.graph().node(value.node);
  Step step;
  step.node = value.node;
  step.name = node.name + (into_blocks ? "/NC1HWC0" : "/NCHW");
  step.type = "TransData";
  step.origin = NodeOrigin(node);
  step.input_types = {into_blocks ? image : blocks};
  step.output_types = {into_blocks ? blocks : image};
  step.input_ports = {-1};
  step.kernel = MakeImageReorder(image.shape, into_blocks, graph_.options().threads);
  PlanValue to;
  to.bytes = step.output_types[0].bytes();
  const PlanIndex index = draft_.AddValue(to, {Address::Kind::kArena});
  draft_.AddStep(std::move(step), {{from}, {index}, {}, -1, {}}, {from});
  return index;
}

void PlanBuilder::CopyOverwrittenConstants(NodeId id, Slots& slots) {
  for (const InPlace& in_place : InPlacesOf(*bound_.op(id), inference_.context(id))) {
    PlanIndex& target = slots[static_cast<size_t>(in_place.slot)];
    if (target < 0 || draft_.address(target).kind != Address::Kind::kConstant) continue;
    target = CopyConstant(id, in_place.slot, target);
  }
}

PlanIndex PlanBuilder::CopyConstant(NodeId id, int slot, PlanIndex constant) {
  const OpContext& context = graph_.context(id);
  const TensorType& type = context.in(slot);
  PlanValue value;
  value.bytes = type.bytes();
  const PlanIndex copy = draft_.AddValue(value, {Address::Kind::kArena});
  Step step;
  step.node = id;
  step.name = context.node().name + "/copy";
  step.type = "TensorMove";
  step.kernel = CopyKernel(value.bytes);
  step.input_types = {type};
  step.output_types = {type};
  step.input_ports = {context.input_index(slot)};
  draft_.AddStep(std::move(step), {{constant}, {copy}, {}, -1, {}}, {constant});
  return copy;
}

PlanBuilder::Slots PlanBuilder::TakeOverCandidates(const Step& step, const Slots& slots) const {
  Slots candidates;
  for (const PlanIndex candidate : slots) {
    if (candidate < 0) continue;
    bool fits = true;
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      const PlanIndex other = slots[slot];
      if (other < 0 || draft_.StorageOf(other) != draft_.StorageOf(candidate)) continue;
      fits = fits && SameSize(step.input_types[slot], step.output_types[0]);
    }
    if (fits) candidates.push_back(candidate);
  }
  return candidates;
}

PlanIndex PlanBuilder::IndexOf(Value value) {
  // Outputs of steps are known before they are read: what is unknown is a view.
  std::vector<Value> views;
  PlanIndex index = FindOrAddSource(value);
  while (index < 0) {
    views.push_back(value);
    value = *bound_.StorageSource(value);
    index = FindOrAddSource(value);
  }
  for (; !views.empty(); views.pop_back()) {
    PlanValue view = draft_.value(index);
    view.same_as = index;
    index = draft_.AddValue(view, draft_.address(index));
    draft_.index[views.back()] = index;
  }
  return index;
}

PlanIndex PlanBuilder::FindOrAddSource(Value value) {
  std::map<Value, PlanIndex>& index = draft_.index;
  const auto known = index.find(value);
  if (known != index.end()) return known->second;
  if (const auto blocks = draft_.blocks.find(value); graph_.layouts().InBlocks(value)) {
    const PlanIndex back = Reorder(value, false, blocks->second);
    return draft_.index[value] = back;
  }
  if (graph_.Folded(value)) {
    return index[value] = draft_.AddConstant(*inference_.constant(value));
  }
  if (IsOutside(value)) return index[value] = AddOutside(value);
  if (IsInputNode(graph_.graph().node(value.node))) return index[value] = AddInput(value.node);
  return -1;
}

bool PlanBuilder::IsOutside(Value value) const {
  return part_ != nullptr &&
         !std::binary_search(part_->nodes_by_id.begin(), part_->nodes_by_id.end(), value.node);
}

PlanIndex PlanBuilder::AddInput(NodeId id) {
  const int position = graph_.position(id);
  PlanValue value;
  value.bytes = graph_.inputs().types[static_cast<size_t>(position)].bytes();
  value.external = true;
  return draft_.AddValue(value, {Address::Kind::kInput, static_cast<uint64_t>(position)});
}

PlanIndex PlanBuilder::AddOutside(Value value) {
  PlanValue outside;
  outside.bytes = inference_.type(value).bytes();
  outside.external = true;
  draft_.outside.push_back(value);
  return draft_.AddValue(outside, {Address::Kind::kInput, draft_.outside.size() - 1});
}

}  // namespace npumesh
