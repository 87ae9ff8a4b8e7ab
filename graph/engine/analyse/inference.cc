#include "graph/engine/analyse/inference.h"

#include <algorithm>

#include "graph/ops/core/operator.h"
#include "graph/passes/analysis/node_error.h"
#include "graph/passes/rewrite/constant_folding.h"
#include "runtime/base/error_list.h"

namespace npumesh {
namespace {

// What an output needs so that memory can be laid out for it.
Status CheckInferred(const OpContext& context) {
  for (int i = 0; i < context.outputs(); ++i) {
    const TensorType& type = context.out(i);
    if (BitsOf(type.dtype) == 0) {
      return Error(Code::kUnsupported, "output {} has dtype {}, which has no fixed width", i,
                   Name(type.dtype));
    }
    if (!type.shape.is_static()) {
      return Error(Code::kUnsupported, "the shape of output {} is only known at run time, seen {}",
                   i, type.ToString());
    }
    NPUMESH_RETURN_IF_ERROR(type.shape.Check().WithContext(fmt::format("output {}", i)));
    if (!BytesOf(type.dtype, static_cast<uint64_t>(type.shape.elements()))) {
      return Error(Code::kInvalidArgument, "output {}: {} has more bytes than 63 bits can count", i,
                   type.ToString());
    }
  }
  return Status();
}

// Outputs that live in the storage of an input need as many bytes as it has.
Status CheckSharedStorage(const Operator& op, const OpContext& context) {
  const auto check = [&](int output, int slot) {
    if (slot >= context.slots() || !context.has(slot)) return Status();
    const TensorType& in = context.in(slot);
    const TensorType& out = context.out(output);
    if (in.bytes() == out.bytes()) return Status();
    return Error(Code::kInvalidArgument,
                 "output {} shares the storage of input slot {}: {} and {} differ in size", output,
                 slot, out.ToString(), in.ToString());
  };
  if (op.view) NPUMESH_RETURN_IF_ERROR(check(0, 0));
  for (const InPlace& in_place : InPlacesOf(op, context)) {
    if (in_place.output < context.outputs()) {
      NPUMESH_RETURN_IF_ERROR(check(in_place.output, in_place.slot));
    }
  }
  return Status();
}

}  // namespace

Inference::Inference(const BoundGraph& graph, Settings settings)
    : graph_(graph), settings_(settings), results_(graph.graph().nodes().size()) {}

Status Inference::Run(const std::vector<NodeId>& order, const std::map<NodeId, Input>& inputs,
                      WeightCache& weights, const std::string& model_path) {
  ErrorList errors;
  for (const NodeId id : order) {
    const Node& node = graph_.node(id);
    if (BehindFailure(node)) {
      result(id).failed = true;
      continue;
    }
    if (const Status status = Visit(node, inputs, weights, model_path); !status.ok()) {
      result(id).failed = true;
      errors.Add(AtNode(node, status));
    }
  }
  return errors.Join(fmt::format("graph \"{}\" cannot be compiled", graph_.graph().name()));
}

bool Inference::BehindFailure(const Node& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const auto& input) { return input && result(input->node).failed; });
}

Status Inference::Visit(const Node& node, const std::map<NodeId, Input>& inputs,
                        WeightCache& weights, const std::string& model_path) {
  NodeResult& mine = result(node.id);
  if (IsInputNode(node)) {
    const Input& input = inputs.at(node.id);
    mine.types = {input.type};
    if (input.value.dtype() != DataType::kUndefined) mine.constants = {Aligned(input.value)};
    return Status();
  }
  if (IsWeightNode(node)) {
    NPUMESH_ASSIGN_OR_RETURN(const Tensor weight, weights.Load(node, model_path));
    mine.types = {weight.type()};
    mine.constants = {weight};
    return Status();
  }
  return IsFurniture(node) ? CheckSources(node) : VisitOperator(node);
}

// A damaged graph may read what no node gives, of a NoOp for example.
Status Inference::CheckSource(Value value) const {
  const size_t given = types(value.node).size();
  if (static_cast<size_t>(value.port) < given) return Status();
  const Node& source = graph_.node(value.node);
  return Error(Code::kCorrupt, "it reads output {} of \"{}\" ({}), which has {}", value.port,
               source.name, source.type, given);
}

Status Inference::CheckSources(const Node& node) const {
  for (const std::optional<Value>& input : node.inputs) {
    if (input) NPUMESH_RETURN_IF_ERROR(CheckSource(*input));
  }
  return Status();
}

Status Inference::VisitOperator(const Node& node) {
  const Operator& op = *graph_.op(node.id);
  NodeResult& mine = result(node.id);
  OpContext& context = mine.context.emplace(graph_.context(node.id));
  context.set_groups(settings_.groups);
  context.set_threads(settings_.threads);
  context.set_packed(settings_.packed);
  context.set_tuning(settings_.tuning);
  for (int slot = 0; slot < context.slots(); ++slot) {
    const std::optional<Value> value = graph_.SlotValue(node.id, slot);
    if (!value) continue;
    NPUMESH_RETURN_IF_ERROR(CheckSource(*value));
    context.set_in(slot, type(*value));
    context.set_value(slot, constant(*value));
  }
  if (settings_.check_operator) NPUMESH_RETURN_IF_ERROR(settings_.check_operator(context));
  if (Recall(node.id)) return Status();
  NPUMESH_RETURN_IF_ERROR(op.infer(context));
  NPUMESH_RETURN_IF_ERROR(CheckInferred(context));
  NPUMESH_RETURN_IF_ERROR(CheckSharedStorage(op, context));
  for (int i = 0; i < context.outputs(); ++i) mine.types.push_back(context.out(i));
  for (int i = 0; i < context.outputs(); ++i) {
    if (graph_.UpdatedUnseen({node.id, i})) return Status();
  }
  NPUMESH_ASSIGN_OR_RETURN(std::optional<std::vector<Tensor>> outputs, FoldConstants(op, context));
  if (outputs) mine.constants = std::move(*outputs);
  return Status();
}

// What comes from a recalled node is what it was; everything else is compared.
bool Inference::Recall(NodeId id) {
  if (settings_.memory == nullptr) return false;
  const auto found = settings_.memory->entries.find(id);
  if (found == settings_.memory->entries.end()) return false;
  const InferenceMemory::Entry& entry = found->second;
  NodeResult& mine = result(id);
  OpContext& context = *mine.context;
  for (int slot = 0; slot < context.slots(); ++slot) {
    const std::optional<Value> value = graph_.SlotValue(id, slot);
    if (!value || recalled(value->node)) continue;
    const auto at = static_cast<size_t>(slot);
    const void* const bytes =
        context.value(slot) != nullptr ? context.value(slot)->data() : nullptr;
    if (context.in(slot) != entry.in[at] || bytes != entry.values[at]) return false;
  }
  for (int port = 0; port < context.outputs(); ++port) {
    context.set_out(port, entry.types[static_cast<size_t>(port)]);
  }
  mine.types = entry.types;
  mine.constants = entry.constants;
  mine.recalled = true;
  return true;
}

InferenceMemory::Entry Inference::EntryOf(NodeId id, bool forgets) const {
  const NodeResult& mine = result(id);
  InferenceMemory::Entry entry;
  for (int slot = 0; slot < mine.context->slots(); ++slot) {
    const Tensor* const value = mine.context->value(slot);
    entry.in.push_back(mine.context->in(slot));
    entry.values.push_back(value != nullptr ? value->data() : nullptr);
  }
  entry.types = mine.types;
  entry.constants = mine.constants;
  if (forgets) entry.constants.assign(mine.constants.size(), Tensor());
  return entry;
}

const TensorType& Inference::type(Value value) const {
  return result(value.node).types[static_cast<size_t>(value.port)];
}

const Tensor* Inference::constant(Value value) const {
  const std::vector<Tensor>& constants = result(value.node).constants;
  return constants.empty() ? nullptr : &constants[static_cast<size_t>(value.port)];
}

bool Inference::folded(NodeId id) const {
  return !result(id).constants.empty();
}

}  // namespace npumesh
