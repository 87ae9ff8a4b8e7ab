// StepObserver: who looks on while a compiled model runs: dump, fault injection, comparison.
//
// Thread-safety: called by the thread that runs the model; views are valid during the call.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_STEP_OBSERVER_H_
#define NPUMESH_GRAPH_ENGINE_RUN_STEP_OBSERVER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/ops/core/operator.h"
#include "runtime/base/status.h"

namespace npumesh {

class CompiledModel;
struct Model;
struct Step;

// Where a run has its tensors.
struct RunMemory {
  std::byte* arena = nullptr;
  // By position: where an input lies that is in no buffer of the session; null: the others.
  std::span<void* const> placed_inputs;
  // Unused bytes before and after the arena, scratch, buffers of inputs and constants, and between
  // what the arena holds (CompileOptions::margin).
  uint64_t margin = 0;
};

// One run of a compiled model, inputs in place, nothing executed yet. Of a late operator (NonZero,
// Unique ...) a run of one step, without outputs before it.
struct RunView {
  const Model& source;  // its nodes carry names, descriptors and formats
  const CompiledModel& model;
  // PlanOperand addresses, by step.
  std::span<const KernelArgs> args;
  uint64_t iteration;  // runs of the session before this one
  // The graph has several plans, or late operators between them: each is a separate run in the same
  // iteration, one after the other, and none has all operators.
  bool part = false;
  RunMemory memory = {};  // of a late operator: nothing
};

// One step of a run. `step` says node, name, type, and the types of its operands; formats are those
// of the node's descriptors. The addresses are device memory, which an observer may also change; a
// constant that the kernel does not read (Kernel::reads) has that of its host bytes, read-only.
// Inputs by slot, absent ones null; an output may lie where an input lies (in-place operators, and
// element-wise ones that take over a buffer without later readers), so inputs are only sure to be
// whole before the step.
struct StepView {
  const RunView& run;
  size_t index;  // of the step in run.model.steps()
  const Step& step;
  const KernelArgs& args;
  double seconds;  // what the kernel took; 0 before it ran
};

// An error from any of these ends the run with that error.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // Whether each operator of the graph has to be a step: a plan without fusions is run then.
  virtual bool needs_each_operator() const { return true; }
  virtual Status BeforeRun(const RunView& /*run*/) { return Status(); }
  virtual Status BeforeStep(const StepView& /*view*/) { return Status(); }
  virtual Status AfterStep(const StepView& /*view*/) { return Status(); }
  // The kernel returned `error`; the run ends with it.
  virtual void StepFailed(const StepView& /*view*/, const Status& /*error*/) {}
  // All steps ran without error; the outputs are in place.
  virtual Status AfterRun(const RunView& /*run*/) { return Status(); }
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_STEP_OBSERVER_H_
