#include "graph/engine/run/program.h"

#include <algorithm>
#include <cstring>

#include "graph/engine/run/late_step.h"
#include "graph/passes/analysis/node_error.h"

namespace npumesh {
namespace {

std::vector<Tensor> CopyOutputs(const PlanCache::Plan& plan, ScopedSpan& span) {
  std::vector<Tensor> outputs;
  uint64_t bytes = 0;
  for (size_t i = 0; i < plan.model->output_types().size(); ++i) {
    Tensor& output = outputs.emplace_back(Tensor::Allocate(plan.model->output_types()[i]));
    if (output.bytes() == 0) continue;
    span.set_bytes(bytes += output.bytes());
    std::memcpy(output.mutable_data(), plan.executor->output(static_cast<int>(i)), output.bytes());
  }
  return outputs;
}

// The memory can be worked on where it is.
bool IsLent(const PlanOperand& input) {
  return input.lending != Lending::kNone && input.data != nullptr && input.type.bytes() > 0 &&
         IsAligned(input.data, input.type.dtype);
}

// The graph outputs of the plan that feed a late node, by its inputs.
std::vector<PlanOperand> InputsOf(const LateNode& late, const PlanCache::Plan& plan) {
  std::vector<PlanOperand> inputs;
  for (const int output : late.inputs) {
    PlanOperand& input = inputs.emplace_back();
    if (output < 0) continue;
    input = {plan.model->output_types()[static_cast<size_t>(output)],
             plan.executor->output(output)};
  }
  return inputs;
}

// The outputs that are not where they were wanted.
std::vector<OutputCopy> MissingOutputs(const PlanCache::Plan& plan,
                                       const std::vector<void*>& places) {
  std::vector<OutputCopy> copies;
  for (size_t i = 0; i < places.size(); ++i) {
    const uint64_t bytes = plan.model->output_types()[i].bytes();
    const void* const from = plan.executor->output(static_cast<int>(i));
    if (bytes > 0 && from != places[i]) copies.push_back({places[i], from, bytes});
  }
  return copies;
}

void Add(const RunStats& run, RunStats& sum) {
  sum.steps += run.steps;
  sum.collectives += run.collectives;
  sum.compute_seconds += run.compute_seconds;
  sum.collective_seconds += run.collective_seconds;
  sum.hidden_seconds += run.hidden_seconds;
}

}  // namespace

struct Program::LateRunner {
  const LateNode* node = nullptr;
  // One of the two.
  std::unique_ptr<LateStep> step;
  std::unique_ptr<ControlFlow> control_flow;  // of a node that runs subgraphs
};

struct Program::StageRunner {
  const Stage* stage = nullptr;  // null: the whole graph
  std::unique_ptr<PlanCache> plans;
  std::vector<LateRunner> late;
};

Program::Program(const Model& model, const Model& library, const PlanSettings& settings,
                 DeviceMemory& memory, ProgramStats& stats)
    : model_(model),
      library_(library),
      settings_(settings),
      memory_(memory),
      stats_(stats),
      pool_(memory, settings.compile.margin) {
  settings_.compile.weights = &weights_;
  if (&model == &library && settings.compile.margin == 0) pool_.UseMemory(settings.memory);
  // Names in a subgraph are others.
  for (const auto& [name, value] : settings.given_weights) {
    if (&model == &library) weights_.Give(name, value);
  }
  weights_.set_progress(settings.compile.weight_progress);
  pool_.set_uploaded([this](const Tensor& constant) { weights_.Arrived(constant); });
}

Program::~Program() = default;

Result<std::unique_ptr<Program>> Program::Create(const Model& model, const Model& library,
                                                 const PlanSettings& settings, DeviceMemory& memory,
                                                 ProgramStats& stats) {
  std::unique_ptr<Program> program(new Program(model, library, settings, memory, stats));
  NPUMESH_RETURN_IF_ERROR(program->AddStages());
  return program;
}

Status Program::AddStages() {
  const size_t inputs = model_.graph.DataNodes().size();
  held_.resize(inputs);
  const DeadNodes dead = settings_.compile.dead_nodes();
  const BoundGraph bound(model_.graph, *settings_.registry);
  written_ = WrittenInputs(bound);
  if (!NeedsStages(bound, dead)) {
    slots_.resize(inputs);
    auto runner = std::make_unique<StageRunner>();
    runner->plans =
        std::make_unique<PlanCache>(model_, settings_, pool_, std::vector<int>(), stats_);
    stages_.push_back(std::move(runner));
    return Status();
  }
  NPUMESH_ASSIGN_OR_RETURN(staged_, SplitStages(model_, *settings_.registry, dead));
  slots_.resize(static_cast<size_t>(staged_.slots));
  for (const Stage& stage : staged_.stages) {
    auto runner = std::make_unique<StageRunner>();
    runner->stage = &stage;
    runner->plans =
        std::make_unique<PlanCache>(stage.model, settings_, pool_, stage.input_slots, stats_);
    for (const LateNode& late : stage.late) NPUMESH_RETURN_IF_ERROR(AddLate(late, *runner));
    stages_.push_back(std::move(runner));
  }
  return Status();
}

Status Program::AddLate(const LateNode& node, StageRunner& runner) {
  LateRunner& late = runner.late.emplace_back();
  late.node = &node;
  if (settings_.registry->Find(node.node.type)->control_flow) {
    late.control_flow =
        std::make_unique<ControlFlow>(node.node, library_, settings_, memory_, stats_);
    return Status();
  }
  NPUMESH_ASSIGN_OR_RETURN(late.step, LateStep::Create(model_, node.node, settings_));
  return Status();
}

Result<const CompiledModel*> Program::Prepare(const std::vector<PlanOperand>& inputs) {
  NPUMESH_ASSIGN_OR_RETURN(const PlanCache::Plan* const plan, FirstPlan(inputs, false));
  return plan->model.get();
}

Result<PlanCache::Plan*> Program::FirstPlan(const std::vector<PlanOperand>& inputs, bool observed) {
  std::copy(inputs.begin(), inputs.end(), slots_.begin());
  return stages_[0]->plans->For(StageInputs(*stages_[0]), observed);
}

Result<std::vector<Tensor>> Program::Run(const std::vector<PlanOperand>& inputs,
                                         StepObserver* observer, uint64_t iteration) {
  NPUMESH_ASSIGN_OR_RETURN(const PlanCache::Plan* const plan,
                           RunStages(inputs, observer, iteration, nullptr));
  ScopedSpan span(CopyProfiler(), SpanKind::kCopy, to_host_);
  return CopyOutputs(*plan, span);
}

Status Program::RunInto(const std::vector<PlanOperand>& inputs, const PlaceOutputs& place,
                        StepObserver* observer, uint64_t iteration) {
  OutputRequest request{place, {}};
  NPUMESH_ASSIGN_OR_RETURN(const PlanCache::Plan* const plan,
                           RunStages(inputs, observer, iteration, &request));
  ScopedSpan span(CopyProfiler(), SpanKind::kCopy, to_host_);
  uint64_t bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!GoesBack(inputs, i)) continue;
    std::memcpy(const_cast<void*>(inputs[i].data), slots_[i].data, inputs[i].type.bytes());
    bytes += inputs[i].type.bytes();
  }
  bytes +=
      MakeCopies(MissingOutputs(*plan, request.places));  // over inputs that went back: outputs win
  span.set_bytes(bytes);
  stats_.output_bytes += bytes;
  return Status();
}

Result<PlanCache::Plan*> Program::RunStages(const std::vector<PlanOperand>& inputs,
                                            StepObserver* observer, uint64_t iteration,
                                            OutputRequest* request) {
  const bool observed = observer != nullptr && observer->needs_each_operator();
  // Before a buffer changes.
  NPUMESH_ASSIGN_OR_RETURN(PlanCache::Plan * plan, FirstPlan(inputs, observed));
  NPUMESH_RETURN_IF_ERROR(TakeInputs(inputs));
  for (const auto& stage : stages_) {
    if (stage != stages_[0]) {
      NPUMESH_ASSIGN_OR_RETURN(plan, stage->plans->For(StageInputs(*stage), observed));
    }
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<void*> lent, PlaceInputs(*stage, *plan));
    std::vector<void*> results(plan->model->output_types().size());
    if (request != nullptr && stage == stages_.back()) {
      NPUMESH_ASSIGN_OR_RETURN(results, PlaceResults(*plan, inputs, lent, *request));
    }
    plan->executor->Place(lent, results);
    NPUMESH_RETURN_IF_ERROR(RunPlan(*stage, *plan, observer, iteration));
    for (LateRunner& late : stage->late) {
      NPUMESH_RETURN_IF_ERROR(AtNode(late.node->node, RunLate(late, *plan, observer, iteration)));
    }
  }
  return plan;
}

SlotNumber Program::SlotOf(const StageRunner& stage, size_t position) const {
  return stage.stage == nullptr ? static_cast<SlotNumber>(position)
                                : stage.stage->input_slots[position];
}

Result<std::vector<void*>> Program::PlaceInputs(const StageRunner& stage,
                                                const PlanCache::Plan& plan) {
  const std::vector<InputUse>& uses = plan.model->uses().inputs;
  std::vector<void*> lent(uses.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    const SlotNumber slot = SlotOf(stage, i);
    const PlanOperand& operand = slots_[static_cast<size_t>(slot)];
    if (operand.lending == Lending::kNone) continue;
    const uint64_t bytes = operand.type.bytes();
    const bool changes = uses[i].written && operand.lending != Lending::kInPlace;
    const bool far = uses[i].remote && !memory_.ForCollectives(operand.data, bytes);
    if (!changes && !far) {
      lent[i] = const_cast<void*>(operand.data);
      continue;
    }
    NPUMESH_RETURN_IF_ERROR(Keep(slot, operand.type, operand.data));
    stats_.input_bytes += bytes;
  }
  return lent;
}

bool Program::GoesBack(const std::vector<PlanOperand>& inputs, size_t position) const {
  const PlanOperand& input = inputs[position];
  return input.lending == Lending::kInPlace && written_[position] && input.data != nullptr &&
         input.type.bytes() > 0 && slots_[position].lending == Lending::kNone;
}

Result<std::vector<void*>> Program::PlaceResults(const PlanCache::Plan& plan,
                                                 const std::vector<PlanOperand>& inputs,
                                                 const std::vector<void*>& lent,
                                                 OutputRequest& request) const {
  const std::vector<TensorType>& types = plan.model->output_types();
  NPUMESH_ASSIGN_OR_RETURN(request.places, request.place(types));
  NPUMESH_RETURN_IF_ERROR(CheckPlaces(types, request.places));
  std::vector<LentRange> ranges;
  for (size_t i = 0; i < lent.size(); ++i) {
    if (lent[i] == nullptr) continue;
    ranges.push_back({lent[i], plan.model->input_types()[i].bytes(), static_cast<int>(i)});
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (GoesBack(inputs, i)) ranges.push_back({inputs[i].data, inputs[i].type.bytes(), -1});
  }
  return DirectPlaces(*plan.model, request.places, ranges, memory_);
}

std::vector<PlanOperand> Program::StageInputs(const StageRunner& stage) const {
  if (stage.stage == nullptr) return slots_;
  std::vector<PlanOperand> inputs;
  for (const SlotNumber slot : stage.stage->input_slots) {
    inputs.push_back(slots_[static_cast<size_t>(slot)]);
  }
  return inputs;
}

Status Program::TakeInputs(const std::vector<PlanOperand>& inputs) {
  ScopedSpan span(CopyProfiler(), SpanKind::kCopy, to_device_);
  uint64_t bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (IsLent(inputs[i])) {
      held_[i].reset();
      continue;
    }
    if (inputs[i].data == nullptr && inputs[i].type.bytes() > 0) {
      slots_[i] = {inputs[i].type, pool_.input(static_cast<int>(i))};
      continue;
    }
    NPUMESH_RETURN_IF_ERROR(Keep(static_cast<int>(i), inputs[i].type, inputs[i].data));
    span.set_bytes(bytes += inputs[i].type.bytes());
    if (&model_ == &library_) stats_.input_bytes += inputs[i].type.bytes();
    held_[i] = inputs[i].type;
  }
  return Status();
}

Status Program::Keep(SlotNumber slot, const TensorType& type, const void* data) {
  const uint64_t bytes = type.bytes();
  NPUMESH_RETURN_IF_ERROR(pool_.ReserveInput(slot, bytes));
  if (bytes > 0) std::memcpy(pool_.input(slot), data, bytes);
  slots_[static_cast<size_t>(slot)] = {type, pool_.input(slot)};
  return Status();
}

bool Program::IsPart(const StageRunner& stage) const {
  return stage.stage != nullptr || &model_ != &library_;
}

Status Program::RunPlan(const StageRunner& stage, PlanCache::Plan& plan, StepObserver* observer,
                        uint64_t iteration) {
  NPUMESH_ASSIGN_OR_RETURN(const RunStats run,
                           plan.executor->Run(observer, iteration, IsPart(stage)));
  Add(run, stats_.run);
  if (stage.stage == nullptr) return Status();
  const std::vector<SlotNumber>& kept = stage.stage->output_slots;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] == kNoSlot) continue;
    NPUMESH_RETURN_IF_ERROR(
        Keep(kept[i], plan.model->output_types()[i], plan.executor->output(static_cast<int>(i))));
  }
  return Status();
}

Status Program::RunLate(LateRunner& late, const PlanCache::Plan& plan, StepObserver* observer,
                        uint64_t iteration) {
  const std::vector<PlanOperand> inputs = InputsOf(*late.node, plan);
  std::vector<Tensor> outputs;
  if (late.control_flow != nullptr) {
    NPUMESH_ASSIGN_OR_RETURN(outputs, late.control_flow->Run(inputs, observer, iteration));
  } else {
    NPUMESH_ASSIGN_OR_RETURN(outputs, late.step->Run(inputs, observer, iteration));
    ++stats_.run.steps;
  }
  const std::vector<SlotNumber>& slots = late.node->output_slots;
  if (outputs.size() != slots.size()) {
    return Error(Code::kCorrupt, "it has {} outputs, {} were computed", slots.size(),
                 outputs.size());
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNoSlot) continue;
    NPUMESH_RETURN_IF_ERROR(Keep(slots[i], outputs[i].type(), outputs[i].data()));
  }
  return Status();
}

std::optional<PlanOperand> Program::held(int position) const {
  const auto at = static_cast<size_t>(position);
  if (position < 0 || at >= held_.size() || !held_[at]) return std::nullopt;
  return PlanOperand{*held_[at], pool_.input(position)};
}

uint64_t Program::arena_bytes() const {
  uint64_t bytes = pool_.arena_bytes();
  for (const auto& stage : stages_) {
    for (const LateRunner& late : stage->late) {
      if (late.control_flow != nullptr) bytes += late.control_flow->arena_bytes();
    }
  }
  return bytes;
}

uint64_t Program::constant_bytes() const {
  uint64_t bytes = pool_.constant_bytes();
  for (const auto& stage : stages_) {
    for (const LateRunner& late : stage->late) {
      if (late.control_flow != nullptr) bytes += late.control_flow->constant_bytes();
    }
  }
  return bytes;
}

}  // namespace npumesh
