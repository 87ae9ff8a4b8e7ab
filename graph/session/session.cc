#include "graph/session/session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/config/validation.h"
#include "graph/dump/writer/fx_summary.h"
#include "graph/engine/analyse/bound_type.h"
#include "graph/engine/analyse/partial_types.h"
#include "graph/engine/run/observer_chain.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/core_budgets.h"
#include "graph/session/node_sharing.h"
#include "graph/session/prepare_model.h"
#include "runtime/base/advice.h"
#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/come_back.h"
#include "runtime/world/step_line.h"

namespace npumesh {
namespace {

constexpr std::string_view kNothingFrozen =
    "experimental_config.frozen_parameter=true freezes nothing: no input is named a parameter";
constexpr std::string_view kNotStatic =
    "tuning: the graph has inputs with open dimensions, and only static graphs are tuned; give the "
    "shapes in the model, or leave aoe_config and auto_tune_mode out";
constexpr std::string_view kFreezeOption = "experimental_config.frozen_parameter=true";
constexpr std::string_view kInferenceOption = "session.graph_run_mode=0";
constexpr char kFrozen[] =
    "{}: {} inputs are taken as constants with the first "
    "run; their address and content may not change afterwards";

bool IsEmpty(const PlanOperand& input) {
  return input.type.dtype == DataType::kUndefined;
}

std::vector<PlanOperand> CopiedInputs(const std::vector<Tensor>& tensors) {
  std::vector<PlanOperand> inputs;
  inputs.reserve(tensors.size());
  for (const Tensor& tensor : tensors) inputs.push_back({tensor.type(), tensor.data()});
  return inputs;
}

bool IsOpen(const PlanOperand& input) {
  return !input.type.shape.is_static();
}

}  // namespace

Session::Session(World& world, DeviceMemory& memory, Model model, SessionOptions options)
    : world_(world),
      memory_(memory),
      model_(std::move(model)),
      options_(std::move(options)),
      registry_(options_.registry != nullptr ? options_.registry : &BuiltinOps()),
      groups_(std::make_unique<GroupSet>(world, memory, options_.groups)),
      graph_dump_(options_.graph_dump, *options_.dump_env,
                  {world.rank(), world.size(), world.local_rank()}),
      loops_(world),
      iterations_(ProfiledTask{.name = model_.graph.name(), .type = "Iteration"}) {}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(World& world, DeviceMemory& memory, Model model,
                                                 SessionOptions options) {
  if (!options.dump_env) {
    NPUMESH_ASSIGN_OR_RETURN(options.dump_env, DumpEnv::FromProcess());
  }
  if (options.card == nullptr) {
    NPUMESH_ASSIGN_OR_RETURN(const Card card, Card::FromProcess());
    if (card) options.card = std::make_shared<NodeWatch>(card);
  }
  std::unique_ptr<Session> session(
      new Session(world, memory, std::move(model), std::move(options)));
  NPUMESH_RETURN_IF_ERROR(session->model_.graph.Verify());
  session->graph_dump_.WriteOriginal(session->model_);
  session->WriteSummary();
  NPUMESH_RETURN_IF_ERROR(PrepareModel(session->model_, session->options_, *session->registry_));
  session->GuardEdges();
  session->group_names_ = GroupsOf(session->model_, *session->registry_);
  session->NumberAmongPeers();
  NPUMESH_RETURN_IF_ERROR(session->Publish(session->ChoosePrecision()));
  NPUMESH_RETURN_IF_ERROR(session->Publish(session->Check()));
  session->tensor_dump_ =
      TensorDump::Start(world, session->options_.tensor_dump, *session->options_.dump_env);
  return session;
}

void Session::GuardEdges() {
  const OpRegistry& trusted = BuiltinOps();
  // An observed run has one stream.
  const bool leaves =
      registry_ == &trusted || options_.compile.margin > 0 || options_.compile.overlap_collectives;
  if (leaves || !HasUntrustedOperators(model_, *registry_, trusted)) return;
  options_.compile.margin = kEdgeMargin;
  edge_guard_ = std::make_unique<EdgeGuard>(trusted);
}

Status Session::Check() {
  // OpenMP ends the process when it cannot have them.
  NPUMESH_RETURN_IF_ERROR(TryThreads(options_.compile.threads - 1,
                                     "kernels (--threads, OMP_NUM_THREADS; 1 needs none)"));
  NPUMESH_RETURN_IF_ERROR(CheckModel(model_, *registry_));
  if (options_.card != nullptr) {
    NPUMESH_RETURN_IF_ERROR(CheckCoreBudgets(BoundGraph(model_.graph, *registry_), *options_.card));
  }
  NPUMESH_ASSIGN_OR_RETURN(inputs_, InputsOf(model_));
  for (const std::string& group : group_names_) {
    NPUMESH_RETURN_IF_ERROR(groups_->MembersOf(group).status());
  }
  NPUMESH_RETURN_IF_ERROR(CheckKnownTypes(model_, *registry_, groups_.get()));
  NPUMESH_RETURN_IF_ERROR(FindFrozen());
  NPUMESH_RETURN_IF_ERROR(PrepareStaticKernels());
  PrepareTuning();
  NPUMESH_RETURN_IF_ERROR(KeepKernelMeta(options_.op_debug_level));
  return MakeProgram();
}

Status Session::ChoosePrecision() {
  return ApplyPrecision(model_, options_.precision, *registry_, groups_.get());
}

// Inference freezes what it can; the option of the compiler must be possible.
Status Session::FindFrozen() {
  std::vector<int> positions = options_.parameters;
  if (!options_.freeze_parameters) {
    if (!options_.precision.inference) return Status();
    std::erase_if(positions, [this](int position) {
      return !FrozenInputs::Find(model_, *registry_, {position}).ok();
    });
    if (positions.empty()) return Status();
  }
  NPUMESH_ASSIGN_OR_RETURN(frozen_, FrozenInputs::Find(model_, *registry_, positions));
  if (frozen_.empty()) {
    SayOnce({std::string(kNothingFrozen)});
  } else {
    SayOnce({fmt::format(kFrozen, options_.freeze_parameters ? kFreezeOption : kInferenceOption,
                         positions.size())});
  }
  return Status();
}

Status Session::UsePrecision(const PrecisionOptions& options) {
  if (options_.precision.wanted() || !options.wanted()) return Status();
  options_.precision = options;
  NPUMESH_RETURN_IF_ERROR(Publish(ChoosePrecision()));
  NPUMESH_RETURN_IF_ERROR(Publish(CheckKnownTypes(model_, *registry_, groups_.get())));
  if (!options_.freeze_parameters) NPUMESH_RETURN_IF_ERROR(Publish(FindFrozen()));
  return Publish(MakeProgram());
}

bool Session::HasOpenDimensions() const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [](const InputSpec& input) { return !input.declared.shape.is_static(); });
}

void Session::PrepareTuning() {
  if (!options_.tuning) return;
  if (HasOpenDimensions()) return Advise(kNotStatic);
  tuner_ = std::make_unique<Tuner>(*options_.tuning);
  if (static_kernels_ != nullptr) static_kernels_->set_tuner(tuner_.get());
}

Status Session::Tune(const TuningOptions& options) {
  if (options_.tuning) return Status();
  options_.tuning = options;
  PrepareTuning();
  return tuner_ == nullptr ? Status() : MakeProgram();
}

Status Session::PrepareStaticKernels() {
  if (!options_.static_kernels) return Status();
  NPUMESH_RETURN_IF_ERROR(CheckLocalWorldSizes(world_));
  StaticKernelOptions options = *options_.static_kernels;
  options.sharers = world_.local_size();
  options.share = world_.local_rank();
  options.trace = options.trace || world_.env().trace;
  NPUMESH_ASSIGN_OR_RETURN(static_kernels_, StaticKernels::Create(std::move(options)));
  return Status();
}

Status Session::KeepKernelMeta(int64_t level) {
  if (level == 0) return Status();
  if (static_kernels_ != nullptr) {
    return static_kernels_->KeepMeta(static_cast<int>(level), options_.dump_env->ascend_work_path);
  }
  Advise(
      fmt::format("session.op_debug_level={}: kernel_meta will hold nothing, because no operator "
                  "is compiled: set mode=reduce-overhead and "
                  "experimental_config.aclgraph._aclnn_static_shape_kernel=true",
                  level));
  return Status();
}

Status Session::DebugKernels(int64_t level) {
  return Publish(KeepKernelMeta(level));
}

Status Session::MakeProgram() {
  PlanSettings settings{registry_, groups_.get(), Observed()};
  settings.max_plans = options_.max_plans;
  settings.loops = &loops_;
  settings.memory = options_.memory;
  if (frozen_.taken()) settings.given_weights = frozen_.PutInto(model_);
  NPUMESH_ASSIGN_OR_RETURN(program_,
                           Program::Create(model_, model_, settings, memory_, program_stats_));
  return Status();
}

Status Session::Freeze(const std::vector<PlanOperand>& inputs) {
  if (frozen_.empty()) return Status();
  const bool first = !frozen_.taken();
  std::vector<Tensor> tensors(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (frozen_.Holds(i)) tensors[i] = Tensor::FromMemory(inputs[i].type, inputs[i].data);
  }
  NPUMESH_RETURN_IF_ERROR(frozen_.Take(tensors, inputs_));
  return first ? MakeProgram() : Status();
}

// The caller's observer before the dump, which has what it may have changed.
template <typename Body>
auto Session::Profiled(StepObserver* observer, Body body) {
  ObserverChain observers;
  if (edge_guard_ != nullptr || tensor_dump_ != nullptr) {
    observers.Add(edge_guard_.get());
    observers.Add(observer);
    if (tensor_dump_ != nullptr) observers.Add(&tensor_dump_->observer());
    observer = &observers;
  }
  Profiler& profiler = Profiler::Of(world_);
  profiler.set_iteration(static_cast<uint32_t>(stats_.runs));
  auto result = [&] {
    ScopedSpan span(&profiler, SpanKind::kIteration, iterations_, kComputeLane);
    span.set_number(stats_.runs);
    const RunningStepLine step(world_, stats_.runs, model_.graph.name());
    return body(observer);
  }();
  NoteMemory(&profiler, memory_.used_bytes());
  TakeStats();
  return result;
}

void Session::EndRun() {
  ++stats_.runs;
  ++calls_;
}

Result<std::vector<Tensor>> Session::Run(const std::vector<Tensor>& inputs,
                                         StepObserver* observer) {
  const auto run = [&](StepObserver* all) -> Result<std::vector<Tensor>> {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<PlanOperand> operands, Ready(CopiedInputs(inputs)));
    NPUMESH_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                             program_->Run(operands, all, stats_.runs));
    EndRun();
    return outputs;
  };
  Result<std::vector<Tensor>> outputs = Profiled(observer, run);
  if (!outputs.ok()) return Publish(outputs.status());
  return outputs;
}

Status Session::RunInto(const std::vector<PlanOperand>& inputs, const PlaceOutputs& place,
                        StepObserver* observer) {
  const auto run = [&](StepObserver* all) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<PlanOperand> operands, Ready(inputs));
    NPUMESH_RETURN_IF_ERROR(program_->RunInto(operands, place, all, stats_.runs));
    EndRun();
    return Status();
  };
  return Publish(Profiled(observer, run));
}

Result<const CompiledModel*> Session::Prepare(const std::vector<Tensor>& inputs) {
  Result<const CompiledModel*> model = PrepareProgram(CopiedInputs(inputs));
  TakeStats();
  if (!model.ok()) return Publish(model.status());
  return model;
}

Result<std::vector<TensorType>> Session::OutputTypes(const std::vector<PlanOperand>& inputs) {
  Result<std::vector<TensorType>> types = TypesOfOutputs(inputs);
  TakeStats();
  if (!types.ok()) return Publish(types.status());
  return types;
}

Result<std::vector<TensorType>> Session::TypesOfOutputs(const std::vector<PlanOperand>& inputs) {
  const NodeId sink = model_.graph.NetOutput();
  const size_t count = sink == kNoNode ? 0 : model_.graph.node(sink).inputs.size();
  const std::vector<TensorType> unknown(count);
  if (inputs.size() == inputs_.size() && std::any_of(inputs.begin(), inputs.end(), IsOpen)) {
    return unknown;
  }
  NPUMESH_RETURN_IF_ERROR(OperandsOf(inputs).status());
  for (size_t i = 0; !frozen_.taken() && i < inputs.size(); ++i) {
    if (frozen_.Holds(i) && inputs[i].data == nullptr) return unknown;
  }
  NPUMESH_ASSIGN_OR_RETURN(const CompiledModel* const model, PrepareProgram(inputs));
  return program_->one_stage() ? model->output_types() : unknown;
}

Result<std::vector<PlanOperand>> Session::Ready(const std::vector<PlanOperand>& inputs) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<PlanOperand> operands, OperandsOf(inputs));
  NPUMESH_RETURN_IF_ERROR(Freeze(inputs));
  if (static_kernels_ != nullptr) static_kernels_->See(OpenSizes(operands));
  return operands;
}

Result<const CompiledModel*> Session::PrepareProgram(const std::vector<PlanOperand>& inputs) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<PlanOperand> operands, Ready(inputs));
  return program_->Prepare(operands);
}

// In the order of the inputs and their dimensions.
std::vector<int64_t> Session::OpenSizes(const std::vector<PlanOperand>& operands) const {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Shape& declared = inputs_[i].declared.shape;
    for (int d = 0; declared.has_rank() && d < declared.rank(); ++d) {
      if (declared[d] == kUnknownDim) sizes.push_back(operands[i].type.shape[d]);
    }
  }
  return sizes;
}

void Session::TakeStats() {
  stats_.run = program_stats_.run;
  stats_.compile_seconds = program_stats_.compile_seconds;
  stats_.plans = program_stats_.plans;
  stats_.steps_compiled = program_stats_.steps_compiled;
  stats_.steps_shared = program_stats_.steps_shared;
  stats_.static_parts = program_stats_.static_parts;
  stats_.arena_bytes = program_->arena_bytes();
  stats_.constant_bytes = program_->constant_bytes();
  stats_.peak_hbm_bytes = memory_.peak_bytes();
  stats_.input_bytes = program_stats_.input_bytes;
  stats_.output_bytes = program_stats_.output_bytes;
  TellTuning();
}

void Session::TellTuning() {
  if (tuner_ == nullptr || tuner_->stats() == told_tuning_) return;
  told_tuning_ = tuner_->stats();
  NPUMESH_INFO("tuning of graph \"{}\": {}", model_.graph.name(), told_tuning_.ToString());
}

Result<std::vector<PlanOperand>> Session::OperandsOf(const std::vector<PlanOperand>& inputs) const {
  if (inputs.size() != inputs_.size()) {
    return Error(Code::kInvalidArgument, "the graph has {} inputs, {} were given", inputs_.size(),
                 inputs.size());
  }
  std::vector<PlanOperand> operands;
  std::vector<TensorType> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<PlanOperand> kept = HeldRef(static_cast<int>(i));
    PlanOperand operand;
    if (!IsEmpty(inputs[i])) {
      operand = {BoundType(inputs_[i], inputs[i].type), inputs[i].data, inputs[i].lending};
    } else if (kept) {
      operand = {kept->type, nullptr};
    } else if (frozen_.Holds(i) && frozen_.taken()) {
      operand.type = frozen_.value(i).type();
    } else {
      return Error(
          Code::kInvalidArgument, "input {} \"{}\": expected {}, seen none{}", inputs_[i].index,
          inputs_[i].name, inputs_[i].declared.ToString(),
          inputs_[i].ref ? "; a RefData keeps its content only after it was given once" : "");
    }
    types.push_back(operand.type);
    if (!frozen_.Holds(i)) operands.push_back(std::move(operand));
  }
  NPUMESH_RETURN_IF_ERROR(CheckInputTypes(inputs_, types));
  return operands;
}

CompileOptions Session::Observed() {
  CompileOptions options = options_.compile;
  options.trace = options.trace || world_.env().trace;
  options.static_kernels = static_kernels_.get();
  options.tuner = tuner_.get();
  options.profiler = &Profiler::Of(world_);
  if (options_.card != nullptr) {
    options.check_operator = [card = options_.card](const OpContext& op) {
      return card->Check(op);
    };
  }
  if (!graph_dump_.wanted()) return options;
  options.observer = [this, inner = options.observer](std::string_view stage, const Model& model) {
    graph_dump_.WriteStage(stage, model, program_stats_.plans);
    if (inner) inner(stage, model);
  };
  return options;
}

// Like a graph dump, a failed summary never fails the run.
void Session::WriteSummary() {
  if (!options_.fx_summary.type) return;
  const Result<std::string> path = WriteFxSummary(model_.graph, *registry_, ".", world_.rank());
  if (path.ok()) {
    NPUMESH_INFO("summary of the graph: {} is written", *path);
  } else {
    NPUMESH_ERROR("no summary of the graph: {}", path.status().message());
  }
}

void Session::DumpTensors(const TensorDumpOptions& options) {
  if (!options_.tensor_dump.wanted())
    tensor_dump_ = TensorDump::Start(world_, options, *options_.dump_env);
}

DumpReport Session::FinishDump() {
  return tensor_dump_ != nullptr ? tensor_dump_->Finish() : DumpReport();
}

std::optional<PlanOperand> Session::HeldRef(int position) const {
  if (position < 0 || static_cast<size_t>(position) >= inputs_.size()) return std::nullopt;
  if (!inputs_[static_cast<size_t>(position)].ref) return std::nullopt;
  int given = position;  // the program has no frozen inputs
  for (int i = 0; frozen_.taken() && i < position; ++i) {
    given -= frozen_.Holds(static_cast<size_t>(i)) ? 1 : 0;
  }
  return program_->held(given);
}

Result<Tensor> Session::ReadRef(int position) const {
  const std::optional<PlanOperand> kept = HeldRef(position);
  if (!kept) {
    return Error(Code::kInvalidArgument, "input at position {} is no RefData that was given",
                 position);
  }
  Tensor tensor = Tensor::Allocate(kept->type);
  if (tensor.bytes() > 0) std::memcpy(tensor.mutable_data(), kept->data, tensor.bytes());
  return tensor;
}

Status Session::Publish(const Status& status) {
  return status.ok() ? status : Fail(status);
}

// A rank that knows less of the groups than the others may still be waited for by any of them.
std::set<int> Session::Peers() {
  std::set<int> peers;
  for (const std::string& group : group_names_) {
    const Result<GroupProvider::Members> members = groups_->MembersOf(group);
    const std::vector<int> ranks = members.ok() ? members->world_ranks : AllRanks(world_.size());
    peers.insert(ranks.begin(), ranks.end());
  }
  peers.erase(world_.rank());
  return peers;
}

void Session::NumberAmongPeers() {
  constexpr uint64_t kSessionOrdinals = 0x73657373696f6e00u;
  for (const int peer : Peers()) {
    numbers_[peer] = world_.NextOrdinal(kSessionOrdinals + static_cast<uint64_t>(peer)) + 1;
  }
}

Status Session::Fail(const Status& status) {
  if (group_names_.empty()) return status;
  const uint64_t torn = groups_->totals().torn;
  const bool is_final = std::exchange(torn_, torn) != torn;
  std::vector<CommonCall> common;
  for (const auto& [peer, number] : numbers_) common.push_back({peer, number << 32 | calls_});
  ++calls_;
  if (is_final) {
    world_.board().PublishFailure(status);
  } else if (FailTogether(world_, status, common)) {
    groups_->MeetAnew(group_names_);
  }
  return status;
}

}  // namespace npumesh
