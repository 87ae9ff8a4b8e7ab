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

struct Executor::Bound {
  Step* step;
  KernelArgs args;
};

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

Result<std::unique_ptr<Executor>> Executor::Create(CompiledModel& model, DevicePool& pool) {
  std::unique_ptr<Executor> executor(new Executor(model, pool, nullptr));
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
  bound_.resize(model_.steps().size());
  return Bind();
}

Status Executor::Bind() {
  for (size_t i = 0; i < model_.input_types().size(); ++i) {
    const uint64_t bytes = model_.input_types()[i].bytes();
    NPUMESH_RETURN_IF_ERROR(pool_.ReserveInput(static_cast<int>(i), bytes));
  }
  NPUMESH_RETURN_IF_ERROR(pool_.ReserveArena(model_.arena_bytes()));
  NPUMESH_RETURN_IF_ERROR(pool_.ReserveScratch(model_.scratch_bytes()));
  void** next = pointers_.data();
  for (size_t i = 0; i < bound_.size(); ++i) {
    Step& step = model_.steps()[i];
    void** const in = next;
    for (const Address& address : step.inputs) *next++ = Resolve(address);
    void** const out = next;
    for (const Address& address : step.outputs) *next++ = Resolve(address);
    bound_[i] = {&step, {in, out, pool_.scratch()}};
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
      return pool_.input(static_cast<int>(address.offset));
  }
  return nullptr;
}

Result<RunStats> Executor::Run(const StepObserver& observer) {
  if (bound_generation_ != pool_.generation()) NPUMESH_RETURN_IF_ERROR(Bind());
  RunStats stats;
  stats.steps = bound_.size();
  Clock::time_point start = Clock::now();
  for (Bound& bound : bound_) {
    Step& step = *bound.step;
    if (const Status status = step.kernel->Run(bound.args); !status.ok()) {
      return AtNode(step.name, step.type, status);
    }
    const Clock::time_point end = Clock::now();
    const double seconds = Seconds(start, end);
    (step.collective ? stats.collective_seconds : stats.compute_seconds) += seconds;
    if (step.collective) ++stats.collectives;
    start = end;
    if (!observer) continue;
    NPUMESH_RETURN_IF_ERROR(observer({step, bound.args, seconds}));
    start = Clock::now();  // what the observer takes is not the step's
  }
  return stats;
}

const void* Executor::output(int index) const {
  return Resolve(model_.outputs()[static_cast<size_t>(index)]);
}

}  // namespace npumesh
