#include "graph/engine/plan/compiler.h"

#include <algorithm>
#include <utility>

#include "graph/engine/analyse/stage_graph.h"
#include "graph/ir/node_kind.h"
#include "graph/passes/analysis/node_error.h"
#include "graph/passes/schedule/stream_plan.h"
#include "runtime/base/error_list.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

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
    : options_(options),
      analysis_(model, registry, groups, options, FoundBefore(options)),
      graph_(model.graph),
      choice_(analysis_, groups),
      builder_(analysis_, draft_),
      parts_(draft_, builder_),
      result_(new CompiledModel()) {
  result_->source_ = &model;
}

Result<std::unique_ptr<CompiledModel>> Compiler::Run(const std::vector<TensorType>& input_types,
                                                     const std::vector<Tensor>& values) {
  if (options_.observer) options_.observer("PreRunBegin", analysis_.model());
  NPUMESH_RETURN_IF_ERROR(analysis_.TakeInputs(input_types, values));
  NPUMESH_RETURN_IF_ERROR(choice_.FindStaticOperators());
  NPUMESH_RETURN_IF_ERROR(analysis_.Infer());
  NPUMESH_RETURN_IF_ERROR(ObserveOptimized());
  analysis_.ChooseLayouts([this](NodeId id) { return choice_.Keeps(id); });
  analysis_.FindFusions();
  NPUMESH_RETURN_IF_ERROR(MakeSteps());
  NPUMESH_RETURN_IF_ERROR(TakeOutputs());
  Finish();
  if (options_.observer) options_.observer("Build", BuiltGraph());
  return std::move(result_);
}

// ---- steps ----

Status Compiler::MakeSteps() {
  ErrorList errors;
  parts_.Take(analysis_, choice_.Parts(), errors);
  for (const NodeId id : analysis_.Kept()) {
    if (parts_.AddStepOf(id)) continue;
    const Status status = builder_.AddStepOf(id);
    if (!status.ok()) errors.Add(AtNode(graph_.node(id), status));
  }
  return errors.Join(fmt::format("graph \"{}\" cannot be compiled", graph_.name()));
}

Status Compiler::TakeOutputs() {
  const NodeId sink = graph_.NetOutput();
  if (sink == kNoNode) {
    return Error(Code::kCorrupt, "graph \"{}\" has no NetOutput", graph_.name());
  }
  const Node& node = graph_.node(sink);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (const Status status = CheckOutput(node, i); !status.ok()) return AtNode(node, status);
    const Value value = *node.inputs[i];
    outputs_.push_back(builder_.IndexOf(value));
    draft_.value(outputs_.back()).output = true;
    result_->output_types_.push_back(analysis_.inference().type(value));
  }
  return Status();
}

Status Compiler::CheckOutput(const Node& sink, size_t index) const {
  if (!sink.inputs[index]) {
    return Error(Code::kCorrupt, "graph output {} is not connected", index);
  }
  const Value value = *sink.inputs[index];
  const Node& producer = graph_.node(value.node);
  const TensorType& inferred = analysis_.inference().type(value);
  const TensorDesc& declared = sink.input_descs[index];
  // A FileConstant's descriptor, from which writers copy this one, means nothing.
  if (IsFileConstant(producer) || !Contradicts(declared, inferred)) return Status();
  const TensorType expected{declared.dtype, *declared.shape};
  return Error(Code::kInvalidArgument,
               "graph output {} (output {} of \"{}\"): {} is declared, {} is inferred", index,
               value.port, producer.name, expected.ToString(), inferred.ToString());
}

// ---- streams and addresses ----

void Compiler::Finish() {
  AssignStreams();
  const MemoryPlan plan = PlanMemory(draft_, options_.spare_memory, options_.margin);
  AssignAddresses(plan);
  result_->uses_ = UsesOf(draft_, plan, WrittenInputs(analysis_.bound()), outputs_);
  TakeFacts(plan);
  const GraphAnalysis::Inputs& inputs = analysis_.inputs();
  result_->inputs_ = inputs.specs;
  result_->input_types_ = inputs.types;
  result_->value_dependent_ = inputs.value_dependent;
  result_->arena_bytes_ = plan.arena_bytes;
  result_->scratch_bytes_ = draft_.scratch_bytes;
  result_->steps_ = std::move(draft_.steps);
  result_->constants_ = std::move(draft_.constants);
  MarkConstants();
  if (options_.trace) Trace(plan);
}

void Compiler::AssignStreams() {
  if (!options_.overlap_collectives) return;
  std::vector<StepPlace> places;
  for (Step& step : draft_.steps) {
    // All kernels share one scratch area, so a kernel that uses it runs beside nothing.
    step.beside = step.collective && step.kernel->scratch_bytes() == 0;
    places.push_back(step.beside       ? StepPlace::kBeside
                     : step.collective ? StepPlace::kAlone
                                       : StepPlace::kCompute);
  }
  const std::vector<int> waits = PlanWaits(draft_.values, places, draft_.plan_steps);
  for (size_t i = 0; i < waits.size(); ++i) draft_.steps[i].wait_for = waits[i];
}

void Compiler::AssignAddresses(const MemoryPlan& plan) {
  for (size_t i = 0; i < draft_.addresses.size(); ++i) {
    Address& address = draft_.addresses[i];
    if (address.kind == Address::Kind::kArena) address.offset += plan.offsets[i];
  }
  const auto address = [this](PlanIndex index) {
    return index < 0 ? Address() : draft_.address(index);
  };
  for (size_t i = 0; i < draft_.steps.size(); ++i) {
    Step& step = draft_.steps[i];
    for (const PlanIndex index : draft_.slots[i]) step.inputs.push_back(address(index));
    for (const PlanIndex index : draft_.plan_steps[i].writes) {
      step.outputs.push_back(address(index));
    }
  }
  for (const PlanIndex index : outputs_) result_->outputs_.push_back(address(index));
}

void Compiler::MarkConstants() {
  std::vector<bool>& read = result_->constant_is_read_;
  read.assign(result_->constants_.size(), false);
  const auto mark = [&read](const Address& address) {
    if (address.kind == Address::Kind::kConstant) read[address.offset] = true;
  };
  for (const Step& step : result_->steps_) {
    for (size_t slot = 0; slot < step.inputs.size(); ++slot) {
      if (step.kernel->reads(static_cast<int>(slot))) mark(step.inputs[slot]);
    }
  }
  for (const Address& output : result_->outputs_) mark(output);
}

// ---- what is told about them ----

void Compiler::TakeFacts(const MemoryPlan& plan) {
  TakeNodeFacts();
  PlanFacts& facts = result_->facts_;
  facts.live_bytes = plan.live_bytes;
  parts_.AddFacts(analysis_, plan, facts);
  std::stable_sort(
      facts.tensors.begin(), facts.tensors.end(),
      [](const PlannedTensor& a, const PlannedTensor& b) { return a.first < b.first; });
}

void Compiler::TakeNodeFacts() {
  PlanFacts& facts = result_->facts_;
  for (const Node& node : graph_.nodes()) {
    if (node.removed || analysis_.bound().op(node.id) == nullptr) continue;
    if (analysis_.Replaced({node.id, 0})) {
      facts.folded.push_back(node.name);
    } else if (!analysis_.needed(node.id)) {
      facts.pruned.push_back(node.name);
    }
  }
  for (const FusionRefusal& refusal : analysis_.fusion_refusals()) {
    facts.unfused.push_back({graph_.node(analysis_.StepNodeOf(refusal.anchor)).name,
                             graph_.node(refusal.anchor).name, refusal.pass, refusal.why});
  }
}

void Compiler::Trace(const MemoryPlan& plan) const {
  const auto say = [this](std::string_view text) {
    WriteLog(LogLevel::kInfo, {__FILE__, __LINE__},
             fmt::format("graph \"{}\": {}", graph_.name(), text));
  };
  const std::vector<NodeId>& order = analysis_.order();
  const auto folded = std::count_if(order.begin(), order.end(), [this](NodeId id) {
    return analysis_.bound().op(id) != nullptr && analysis_.inference().folded(id);
  });
  say(fmt::format("{} nodes, {} needed, {} folded, {} steps, {} constants", graph_.nodes().size(),
                  order.size(), folded, result_->steps_.size(), result_->constants_.size()));
  say(fmt::format("arena {} bytes, at most {} alive at once", plan.arena_bytes, plan.live_bytes));
  for (const Step& step : result_->steps_) {
    const std::string choice = step.kernel->choice().ToString();
    if (choice.empty()) continue;
    say(fmt::format("step \"{}\" ({}): kernel: {}", step.name, step.type, choice));
  }
  for (const UnfusedNode& unfused : result_->facts_.unfused) {
    say(fmt::format("step \"{}\": {}", unfused.step, unfused.ToString()));
  }
}

// ---- what observers see ----

Status Compiler::ObserveOptimized() const {
  if (!options_.observer) return Status();
  const Model typed = TypedGraph(analysis_.model(), analysis_.inference(), analysis_.order());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> file_order, graph_.StableOrder());
  options_.observer("PreRunAfterOptimizeOriginalGraph", OptimizedGraph(typed, file_order));
  options_.observer("PreRunAfterOptimizeGraphBeforeBuild",
                    OptimizedGraph(typed, analysis_.order()));
  return Status();
}

Model Compiler::OptimizedGraph(const Model& typed, const std::vector<NodeId>& order) const {
  return KeptGraph(typed, analysis_.Kept(order), [this](Value value) {
    return analysis_.Replaced(value) ? analysis_.inference().constant(value) : nullptr;
  });
}

Model Compiler::BuiltGraph() const {
  const std::vector<NodeId>& order = analysis_.order();
  Model built = OptimizedGraph(TypedGraph(analysis_.model(), analysis_.inference(), order), order);
  for (const Step& step : result_->steps_) {
    const NodeId id = built.graph.Find(step.name);
    if (id == kNoNode) continue;
    std::vector<int64_t> offsets;
    for (size_t port = 0; port + step.others < step.outputs.size(); ++port) {
      offsets.push_back(static_cast<int64_t>(step.outputs[port].offset));
    }
    built.graph.node(id).attrs.insert_or_assign("output_i", AttrValue::Ints(std::move(offsets)));
  }
  for (const auto& [id, fused] : analysis_.fusion_of()) {
    const std::string& step = graph_.node(fused->nodes.back()).name;
    Node& node = built.graph.node(built.graph.Find(graph_.node(id).name));
    if (node.name != step) node.attrs.insert_or_assign("_fused_into", AttrValue::String(step));
  }
  return built;
}

}  // namespace npumesh
