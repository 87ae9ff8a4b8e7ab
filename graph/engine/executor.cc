#include <chrono>

#include "graph/engine/compiled_model.h"
#include "graph/passes/node_error.h"

namespace npumesh {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Executor::Executor(CompiledModel& model, DevicePool& pool, std::unique_ptr<DevicePool> own_pool)
    : model_(model), own_pool_(std::move(own_pool)), pool_(pool) {}

Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::Create(CompiledModel& model, DeviceMemory& memory) {
  auto pool = std::make_unique<DevicePool>(memory);
  DevicePool& own = *pool;
  std::unique_ptr<Executor> executor(new Executor(model, own, std::move(pool)));
  NPUMESH_RETURN_IF_ERROR(executor->Prepare());
  return executor;
}

Result<std::unique_ptr<Executor>> Executor::Create(CompiledModel& model, DevicePool& pool,
                                                   std::vector<int> slots) {
  std::unique_ptr<Executor> executor(new Executor(model, pool, nullptr));
  executor->slots_ = std::move(slots);
  NPUMESH_RETURN_IF_ERROR(executor->Prepare());
  return executor;
}

Status Executor::Prepare() {
  for (const Tensor& tensor : model_.constants()) {
    NPUMESH_ASSIGN_OR_RETURN(std::shared_ptr<const DeviceConstant> constant,
                             pool_.Constant(tensor));
    constants_.push_back(std::move(constant));
  }
  size_t operands = 0;
  for (const Step& step : model_.steps()) operands += step.inputs.size() + step.outputs.size();
  pointers_.resize(operands);
  args_.resize(model_.steps().size());
  return Bind();
}

Status Executor::Bind() {
  for (size_t i = 0; i < model_.input_types().size(); ++i) {
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
  bound_generation_ = pool_.generation();
  return Status();
}

void* Executor::Resolve(const Address& address) const {
  switch (address.kind) {
    case Address::Kind::kNone:
      return nullptr;
    case Address::Kind::kArena:
      return pool_.arena() + address.offset;
    case Address::Kind::kConstant:
      return const_cast<void*>(constants_[address.offset]->address());
    case Address::Kind::kInput:
      return pool_.input(SlotOf(static_cast<int>(address.offset)));
  }
  return nullptr;
}

Result<RunStats> Executor::Run(StepObserver* observer, uint64_t iteration, bool part) {
  if (bound_generation_ != pool_.generation()) NPUMESH_RETURN_IF_ERROR(Bind());
  const RunView run{model_.source(), model_, args_, iteration, part};
  RunStats stats;
  stats.steps = args_.size();
  if (observer != nullptr) NPUMESH_RETURN_IF_ERROR(observer->BeforeRun(run));
  NPUMESH_RETURN_IF_ERROR(RunSteps(run, observer, stats));
  if (observer != nullptr) NPUMESH_RETURN_IF_ERROR(observer->AfterRun(run));
  return stats;
}

Status Executor::RunSteps(const RunView& run, StepObserver* observer, RunStats& stats) {
  Clock::time_point start = Clock::now();
  for (size_t i = 0; i < args_.size(); ++i) {
    Step& step = model_.steps()[i];
    StepView view{run, i, step, args_[i], 0};
    if (observer != nullptr) {
      NPUMESH_RETURN_IF_ERROR(observer->BeforeStep(view));
      start = Clock::now();  // what the observer takes is not the step's
    }
    const Status status = step.kernel->Run(args_[i]);
    const Clock::time_point end = Clock::now();
    view.seconds = Seconds(start, end);
    start = end;
    if (!status.ok()) {
      const Status error = AtNode(step.name, step.type, status);
      if (observer != nullptr) observer->StepFailed(view, error);
      return error;
    }
    (step.collective ? stats.collective_seconds : stats.compute_seconds) += view.seconds;
    if (step.collective) ++stats.collectives;
    if (observer != nullptr) NPUMESH_RETURN_IF_ERROR(observer->AfterStep(view));
  }
  return Status();
}

const void* Executor::output(int index) const {
  return Resolve(model_.outputs()[static_cast<size_t>(index)]);
}

}  // namespace npumesh
