#include "graph/engine/analyse/graph_analysis.h"

#include "graph/engine/analyse/stage_graph.h"
#include "graph/ir/node_kind.h"
#include "graph/passes/analysis/node_error.h"
#include "graph/passes/analysis/operator_check.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/analysis/value_flow.h"
#include "graph/passes/schedule/execution_order.h"

namespace npumesh {
namespace {

Inference::Settings InferenceSettings(GroupProvider* groups, const CompileOptions& options,
                                      const InferenceMemory* memory) {
  Inference::Settings settings;
  settings.groups = groups;
  settings.threads = options.threads;
  if (options.weights != nullptr) settings.packed = &options.weights->packed();
  settings.tuning = options.tuner;
  settings.memory = memory;
  settings.check_operator = options.check_operator;
  return settings;
}

}  // namespace

GraphAnalysis::GraphAnalysis(const Model& model, const OpRegistry& registry, GroupProvider* groups,
                             const CompileOptions& options, const InferenceMemory* memory)
    : model_(model),
      options_(options),
      bound_(model.graph, registry),
      inference_(bound_, InferenceSettings(groups, options, memory)) {}

Status GraphAnalysis::TakeInputs(const std::vector<TensorType>& types,
                                 const std::vector<Tensor>& values) {
  needed_ = Needed(nullptr);
  NPUMESH_RETURN_IF_ERROR(CheckOperators(bound_, needed_));
  NPUMESH_ASSIGN_OR_RETURN(inputs_.specs, InputsOf(model_));
  NPUMESH_RETURN_IF_ERROR(CheckInputTypes(inputs_.specs, types));
  inputs_.types = types;
  NPUMESH_RETURN_IF_ERROR(BindInputs(values));
  const bool overlap = options_.overlap_collectives && !options_.spare_memory;
  NPUMESH_ASSIGN_OR_RETURN(order_, ExecutionOrder(bound_, needed_, options_.order, overlap));
  return Status();
}

Status GraphAnalysis::BindInputs(const std::vector<Tensor>& values) {
  inputs_.value_dependent.assign(inputs_.types.size(), false);
  const std::vector<bool> deciding = ShapeDecidingInputs(bound_, needed_);
  const std::vector<NodeId> nodes = graph().DataNodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    positions_[nodes[i]] = static_cast<int>(i);
    Inference::Input& input = input_of_[nodes[i]];
    input.type = inputs_.types[i];
    if (!deciding[static_cast<size_t>(nodes[i])] || i >= values.size()) continue;
    if (values[i].dtype() == DataType::kUndefined) continue;
    if (values[i].type() != input.type) {
      return Error(Code::kInvalidArgument, "input \"{}\": its type is {}, but its value is {}",
                   inputs_.specs[i].name, input.type.ToString(), values[i].type().ToString());
    }
    if (input.type.bytes() > kMaxShapeValueBytes) continue;
    input.value = values[i];
    inputs_.value_dependent[i] = true;
  }
  return Status();
}

Status GraphAnalysis::Infer() {
  WeightCache& weights = options_.weights != nullptr ? *options_.weights : own_weights_;
  NPUMESH_RETURN_IF_ERROR(inference_.Run(order_, input_of_, weights, model_.path));
  if (options_.observer) {
    options_.observer("AfterInfershape", TypedGraph(model_, inference_, order_));
  }
  needed_ = Needed([this](Value value) { return Replaced(value); });
  return CheckProducers();
}

std::vector<bool> GraphAnalysis::Needed(const std::function<bool(Value)>& known) const {
  return NeededNodes(bound_, known, options_.dead_nodes());
}

Status GraphAnalysis::CheckProducers() const {
  for (const NodeId id : Kept()) {
    for (const std::optional<Value>& input : graph().node(id).inputs) {
      if (!input || needed(input->node) || Folded(*input)) continue;
      return AtNode(graph().node(id),
                    Error(Code::kInternal, "no operator computes output {} of \"{}\"", input->port,
                          graph().node(input->node).name));
    }
  }
  return Status();
}

void GraphAnalysis::ChooseLayouts(const std::function<bool(NodeId)>& stays) {
  const bool on = options_.fuses != nullptr && options_.fuses(kImageLayoutPass);
  if (!on || options_.static_kernels != nullptr) return;
  const std::vector<NodeId> kept = Kept();
  const LayoutInput input = {
      bound_, kept, [this](NodeId id) -> const OpContext& { return inference_.context(id); },
      [this](Value value) { return Folded(value) ? inference_.constant(value) : nullptr; }, stays};
  layouts_ = ImageLayouts::Choose(input);
}

const OpContext& GraphAnalysis::context(NodeId id) const {
  const BlockedNode* const blocked = layouts_.Find(id);
  return blocked != nullptr ? blocked->context : inference_.context(id);
}

TensorType GraphAnalysis::StoredType(Value value) const {
  return layouts_.InBlocks(value) ? context(value.node).out(value.port) : inference_.type(value);
}

void GraphAnalysis::FindFusions() {
  if (!options_.fuses && options_.static_kernels == nullptr) return;
  const std::vector<NodeId> kept = Kept();
  const FusionInput input = {
      bound_,
      kept,
      [this](NodeId id) -> const OpContext& { return context(id); },
      [this](Value value) { return Replaced(value); },
      options_.static_kernels,
      [this](NodeId id) -> const OpContext& { return inference_.context(id); },
      [this](NodeId id) -> const Convolution* {
        const BlockedNode* const blocked = layouts_.Find(id);
        return blocked != nullptr ? blocked->convolution.get() : nullptr;
      }};
  fusions_ = Fuse(input, options_.fuses);
  for (const FusedStep& fused : fusions_.steps) {
    for (const NodeId id : fused.nodes) fusion_of_[id] = &fused;
  }
}

NodeId GraphAnalysis::StepNodeOf(NodeId id) const {
  const auto fused = fusion_of_.find(id);
  return fused == fusion_of_.end() ? id : fused->second->nodes.back();
}

std::vector<NodeId> GraphAnalysis::Kept(const std::vector<NodeId>& order) const {
  std::vector<NodeId> kept;
  for (const NodeId id : order) {
    if (needed(id)) kept.push_back(id);
  }
  return kept;
}

bool GraphAnalysis::Folded(Value value) const {
  if (inference_.constant(value) == nullptr) return false;
  const Node& node = graph().node(value.node);
  return options_.fold_constants || IsWeightNode(node) || IsShapeQuery(bound_, value.node);
}

bool GraphAnalysis::Replaced(Value value) const {
  return bound_.op(value.node) != nullptr && Folded(value);
}

}  // namespace npumesh
