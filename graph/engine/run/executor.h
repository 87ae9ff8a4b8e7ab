// Executor: walks the steps of a CompiledModel.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_EXECUTOR_H_
#define NPUMESH_GRAPH_ENGINE_RUN_EXECUTOR_H_

#include <chrono>
#include <memory>
#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/run/device_pool.h"
#include "graph/engine/run/step_observer.h"
#include "graph/engine/run/step_profile.h"
#include "runtime/device/device_memory.h"

namespace npumesh {

// Time and memory of one run.
struct RunStats {
  double compute_seconds = 0;
  double collective_seconds = 0;
  // Of the collectives, what passed while this rank computed and did not wait for them.
  double hidden_seconds = 0;
  uint64_t steps = 0;
  uint64_t collectives = 0;
};

// When the kernel of a step ran.
struct StepSpan {
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
};

class CommStream;

// Binds one CompiledModel to device buffers and runs it.
class Executor {
 public:
  // Allocates arena, scratch, inputs and constants in HBM. `model` and `memory` must outlive it.
  static Result<std::unique_ptr<Executor>> Create(CompiledModel& model, DeviceMemory& memory);
  // The same in buffers that several executors share, of which one runs at a time. `pool` must
  // outlive it. `slots` gives, by input position, the input buffer of the pool that is meant;
  // empty: the position itself. `profiler`, which may be null, gets a span for each step. `inputs`
  // as of Place; empty: none is elsewhere.
  static Result<std::unique_ptr<Executor>> Create(CompiledModel& model, DevicePool& pool,
                                                  std::vector<int> slots = {},
                                                  Profiler* profiler = nullptr,
                                                  std::vector<void*> inputs = {});
  ~Executor();

  // Device buffer of input `position`; the caller writes its bytes before Run. RefData buffers keep
  // their content from run to run.
  void* input_buffer(int position) const { return pool_.input(SlotOf(position)); }

  // From now on the inputs, by position, and the outputs, by number, lie at these addresses; null:
  // in the pool. Such memory stays until the last run with it. REQUIRES: outputs that are elsewhere
  // are movable (CompiledModel::uses).
  void Place(const std::vector<void*>& inputs, const std::vector<void*>& outputs);

  // Runs all steps. No allocation once the buffers stay where they are. `observer` may be null, and
  // is told that this is run number `iteration`, or a part of it. In an observed run collectives
  // run one after the other with everything else, so that each step's tensors are whole when it is
  // shown. Errors name the step's operator; then no collective is under way any more.
  Result<RunStats> Run(StepObserver* observer = nullptr, uint64_t iteration = 0, bool part = false);

  // By step, of the last run without error.
  const std::vector<StepSpan>& timeline() const { return spans_; }

  // Address of graph output `index`, where Place has put it or in device memory; there it is valid
  // until the next Run of an executor on the same buffers.
  const void* output(int index) const;

 private:
  Executor(CompiledModel& model, DevicePool& pool, std::unique_ptr<DevicePool> own_pool,
           Profiler* profiler);
  int SlotOf(int position) const {
    return slots_.empty() ? position : slots_[static_cast<size_t>(position)];
  }
  Status Prepare();
  // Sets all addresses; again after another executor on the pool made an area move.
  Status Bind();
  // Where the operands with these numbers are.
  void Point(const std::vector<size_t>& operands, void* address);
  void PointAtOutputs();
  void* Resolve(const Address& address) const;
  void* AddressOfConstant(size_t index) const;
  // Between BeforeRun and AfterRun of the observer.
  Status RunObserved(const RunView& run, StepObserver& observer, RunStats& stats);
  Status RunInOrder(RunStats& stats);
  // With the steps beside on the communication stream.
  Status RunOverlapped(RunStats& stats);
  // Until the first error, without waiting for the last collectives. Adds the seconds spent
  // waiting.
  Status RunBeside(RunStats& stats, double& waited);
  // Runs a step on this thread from `start` on; returns when it ended.
  Result<std::chrono::steady_clock::time_point> RunStep(size_t index,
                                                        std::chrono::steady_clock::time_point start,
                                                        RunStats& stats);

  CompiledModel& model_;
  std::unique_ptr<DevicePool> own_pool_;  // null when the pool is the caller's
  DevicePool& pool_;
  std::vector<int> slots_;
  std::vector<std::shared_ptr<const DeviceConstant>> constants_;  // null: it is not read
  // PlanOperand addresses of all steps, inputs before outputs, step by step.
  std::vector<void*> pointers_;
  // As Place was told; entries may be null.
  std::vector<void*> placed_inputs_;
  std::vector<void*> placed_outputs_;
  std::vector<KernelArgs> args_;  // by step
  std::vector<StepSpan> spans_;   // by step
  StepProfile profile_;
  std::unique_ptr<CommStream> comm_stream_;  // null: all steps run in order
  uint64_t bound_generation_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_EXECUTOR_H_
