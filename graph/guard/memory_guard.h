// MemoryGuard: finds operators that write where they must not, or read what they have not written.
//
// After each step all memory of the plan but the step's outputs is what it was before: tensors that
// other steps read, inputs of the graph, the bytes between them. Weights are compared after steps
// of operators that are not trusted (those of a library). Such an operator also runs once more on
// other contents of its scratch memory and its outputs, and has to give the same bits, unless it
// meets other ranks or is not `pure`.
//
// What it costs: a copy of arena, inputs and scratch, and a pass over them after each step. It sees
// device memory only; writes to other memory of the process are for a sanitizer. Outputs of late
// operators (NonZero ...) are not in device memory; of those only the inputs are compared.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_GUARD_MEMORY_GUARD_H_
#define NPUMESH_GRAPH_GUARD_MEMORY_GUARD_H_

#include <cstdint>
#include <vector>

#include "graph/engine/run/step_observer.h"
#include "graph/guard/guarded_area.h"
#include "graph/guard/written_memory.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// What CompileOptions::margin should be.
inline constexpr uint64_t kGuardMargin = 4096;

class MemoryGuard final : public StepObserver {
 public:
  // `operators`: those of the run; `trusted`: those among them that need not run twice. Both must
  // outlive it. An observer that changes outputs must be told before this one.
  MemoryGuard(const OpRegistry& operators, const OpRegistry& trusted)
      : operators_(operators), trusted_(trusted) {}

  Status BeforeRun(const RunView& run) override;
  Status BeforeStep(const StepView& view) override;
  // Errors (kCorrupt) name operator, node, step, tensor and byte.
  Status AfterStep(const StepView& view) override;

  // Steps that were checked, and how many of them ran once more.
  uint64_t steps() const { return steps_; }
  uint64_t repeated() const { return repeated_; }

 private:
  void AddAreas(const RunView& run);
  bool Trusts(const StepView& view) const;
  Status CheckMemory(const StepView& view);
  bool MayRepeat(const StepView& view) const;
  Status CheckRepeated(const StepView& view);

  const OpRegistry& operators_;
  const OpRegistry& trusted_;
  std::vector<GuardedArea> areas_;  // of the run
  WrittenMemory written_;           // by the step
  uint64_t steps_ = 0;
  uint64_t repeated_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_GUARD_MEMORY_GUARD_H_
