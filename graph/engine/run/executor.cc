#include "graph/engine/run/executor.h"

#include <algorithm>
#include <chrono>

#include "graph/engine/run/comm_stream.h"
#include "graph/passes/analysis/node_error.h"
#include "runtime/base/process/running_step.h"

namespace npumesh {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Executor::Executor(CompiledModel& model, DevicePool& pool, std::unique_ptr<DevicePool> own_pool,
                   Profiler* profiler)
    : model_(model), own_pool_(std::move(own_pool)), pool_(pool), profile_(model, profiler) {}

Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::Create(CompiledModel& model, DeviceMemory& memory) {
  auto pool = std::make_unique<DevicePool>(memory);
  DevicePool& own = *pool;
  std::unique_ptr<Executor> executor(new Executor(model, own, std::move(pool), nullptr));
  NPUMESH_RETURN_IF_ERROR(executor->Prepare());
  return executor;
}

Result<std::unique_ptr<Executor>> Executor::Create(CompiledModel& model, DevicePool& pool,
                                                   std::vector<int> slots, Profiler* profiler,
                                                   std::vector<void*> inputs) {
  std::unique_ptr<Executor> executor(new Executor(model, pool, nullptr, profiler));
  executor->slots_ = std::move(slots);
  executor->placed_inputs_ = std::move(inputs);
  NPUMESH_RETURN_IF_ERROR(executor->Prepare());
  return executor;
}

Status Executor::Prepare() {
  placed_inputs_.resize(model_.input_types().size());
  placed_outputs_.resize(model_.output_types().size());
  for (size_t i = 0; i < model_.constants().size(); ++i) {
    constants_.emplace_back();
    if (!model_.constant_is_read(i)) continue;
    NPUMESH_ASSIGN_OR_RETURN(constants_.back(), pool_.Constant(model_.constants()[i]));
  }
  size_t operands = 0;
  for (const Step& step : model_.steps()) operands += step.inputs.size() + step.outputs.size();
  pointers_.resize(operands);
  args_.resize(model_.steps().size());
  spans_.resize(model_.steps().size());
  const auto beside = [](const Step& step) { return step.beside; };
  if (std::any_of(model_.steps().begin(), model_.steps().end(), beside)) {
    comm_stream_ =
        std::make_unique<CommStream>(model_, pool_.communication_stream(), spans_, profile_);
  }
  return Bind();
}

Status Executor::Bind() {
  for (size_t i = 0; i < model_.input_types().size(); ++i) {
    if (placed_inputs_[i] != nullptr) continue;
    const uint64_t bytes = model_.input_types()[i].bytes();
    NPUMESH_RETURN_IF_ERROR(pool_.ReserveInput(SlotOf(static_cast<int>(i)), bytes));
  }
  NPUMESH_RETURN_IF_ERROR(pool_.ReserveArena(model_.arena_bytes()));
  NPUMESH_RETURN_IF_ERROR(pool_.ReserveScratch(model_.scratch_bytes()));
  void** next = pointers_.data();
  for (size_t i = 0; i < args_.size(); ++i) {
    const Step& step = model_.steps()[i];
    void** const in = next;
    for (const Address& address : step.inputs) *next++ = Resolve(address);
    void** const out = next;
    for (const Address& address : step.outputs) *next++ = Resolve(address);
    args_[i] = {in, out, pool_.scratch()};
  }
  PointAtOutputs();
  bound_generation_ = pool_.generation();
  return Status();
}

void Executor::Place(const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
  const PlanUses& uses = model_.uses();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == placed_inputs_[i]) continue;
    placed_inputs_[i] = inputs[i];
    Point(uses.inputs[i].operands, Resolve({Address::Kind::kInput, i}));
  }
  if (outputs == placed_outputs_) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr && placed_outputs_[i] != nullptr) {
      Point(uses.outputs[i].operands, Resolve(model_.outputs()[i]));
    }
  }
  placed_outputs_ = outputs;
  PointAtOutputs();
}

void Executor::PointAtOutputs() {
  for (size_t i = 0; i < placed_outputs_.size(); ++i) {
    if (placed_outputs_[i] != nullptr) Point(model_.uses().outputs[i].operands, placed_outputs_[i]);
  }
}

void Executor::Point(const std::vector<size_t>& operands, void* address) {
  for (const size_t operand : operands) pointers_[operand] = address;
}

void* Executor::Resolve(const Address& address) const {
  switch (address.kind) {
    case Address::Kind::kNone:
      return nullptr;
    case Address::Kind::kArena:
      return pool_.arena() + address.offset;
    case Address::Kind::kConstant:
      return AddressOfConstant(address.offset);
    case Address::Kind::kInput:
      return placed_inputs_[address.offset] != nullptr
                 ? placed_inputs_[address.offset]
                 : pool_.input(SlotOf(static_cast<int>(address.offset)));
  }
  return nullptr;
}

void* Executor::AddressOfConstant(size_t index) const {
  const void* const address = constants_[index] != nullptr ? constants_[index]->address()
                                                           : model_.constants()[index].data();
  return const_cast<void*>(address);
}

Result<RunStats> Executor::Run(StepObserver* observer, uint64_t iteration, bool part) {
  if (bound_generation_ != pool_.generation()) NPUMESH_RETURN_IF_ERROR(Bind());
  profile_.Begin();
  const RunMemory memory{pool_.arena(), placed_inputs_, pool_.margin()};
  const RunView run{model_.source(), model_, args_, iteration, part, memory};
  RunStats stats;
  stats.steps = args_.size();
  if (observer == nullptr) {
    const Status ran = comm_stream_ == nullptr ? RunInOrder(stats) : RunOverlapped(stats);
    profile_.End();
    NPUMESH_RETURN_IF_ERROR(ran);
    return stats;
  }
  NPUMESH_RETURN_IF_ERROR(observer->BeforeRun(run));
  const Status ran = RunObserved(run, *observer, stats);
  profile_.End();
  NPUMESH_RETURN_IF_ERROR(ran);
  NPUMESH_RETURN_IF_ERROR(observer->AfterRun(run));
  return stats;
}

Status Executor::RunObserved(const RunView& run, StepObserver& observer, RunStats& stats) {
  for (size_t i = 0; i < args_.size(); ++i) {
    StepView view{run, i, model_.steps()[i], args_[i], 0};
    NPUMESH_RETURN_IF_ERROR(observer.BeforeStep(view));
    const Clock::time_point start = Clock::now();  // what the observer takes is not the step's
    const Result<Clock::time_point> end = RunStep(i, start, stats);
    if (!end.ok()) {
      view.seconds = Seconds(start, Clock::now());
      observer.StepFailed(view, end.status());
      return end.status();
    }
    view.seconds = Seconds(start, *end);
    NPUMESH_RETURN_IF_ERROR(observer.AfterStep(view));
  }
  return Status();
}

Status Executor::RunInOrder(RunStats& stats) {
  Clock::time_point now = Clock::now();
  for (size_t i = 0; i < args_.size(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(now, RunStep(i, now, stats));
  }
  return Status();
}

Result<Clock::time_point> Executor::RunStep(size_t index, Clock::time_point start,
                                            RunStats& stats) {
  Step& step = model_.steps()[index];
  const InStep here({step.name.c_str(), step.type.c_str(), index, args_.size()});
  const Status status = step.kernel->Run(args_[index]);
  const Clock::time_point end = Clock::now();
  if (!status.ok()) return AtNode(step.name, step.type, step.origin, status);
  spans_[index] = {start, end};
  profile_.Ran(index, start, end);
  (step.collective ? stats.collective_seconds : stats.compute_seconds) += Seconds(start, end);
  if (step.collective) ++stats.collectives;
  return end;
}

Status Executor::RunOverlapped(RunStats& stats) {
  comm_stream_->Begin();
  double waited = 0;
  const Status status = RunBeside(stats, waited);
  const Clock::time_point start = Clock::now();
  const Status collectives = comm_stream_->AwaitAll();
  waited += Seconds(start, Clock::now());
  NPUMESH_RETURN_IF_ERROR(collectives);  // which came before the step that failed here
  NPUMESH_RETURN_IF_ERROR(status);
  double beside = 0;
  for (size_t i = 0; i < args_.size(); ++i) {
    if (!model_.steps()[i].beside) continue;
    beside += Seconds(spans_[i].start, spans_[i].end);
    ++stats.collectives;
  }
  stats.collective_seconds += beside;
  stats.hidden_seconds += std::max(beside - waited, 0.0);
  return Status();
}

Status Executor::RunBeside(RunStats& stats, double& waited) {
  Clock::time_point now = Clock::now();
  for (size_t i = 0; i < args_.size(); ++i) {
    const Step& step = model_.steps()[i];
    if (step.wait_for >= 0) {
      NPUMESH_RETURN_IF_ERROR(comm_stream_->Await(static_cast<size_t>(step.wait_for)));
      waited += Seconds(now, Clock::now());
      now = Clock::now();
    }
    if (step.beside) {
      comm_stream_->Launch(i, args_[i]);
    } else {
      NPUMESH_ASSIGN_OR_RETURN(now, RunStep(i, now, stats));
    }
  }
  return Status();
}

const void* Executor::output(int index) const {
  const std::vector<Address>& outputs = model_.outputs();
  const Address& address = outputs[static_cast<size_t>(index)];
  const int within = model_.uses().outputs[static_cast<size_t>(index)].within;
  if (within < 0 || placed_outputs_[static_cast<size_t>(within)] == nullptr)
    return Resolve(address);
  const uint64_t from = outputs[static_cast<size_t>(within)].offset;
  return static_cast<std::byte*>(placed_outputs_[static_cast<size_t>(within)]) + address.offset -
         from;
}

}  // namespace npumesh
