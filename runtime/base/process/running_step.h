// Which step of a graph a thread is in, for the line that says it when the process dies of a
// signal.
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_RUNNING_STEP_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_RUNNING_STEP_H_

#include <atomic>
#include <cstddef>

namespace npumesh {

// Texts are those of the plan, which outlives its steps; a null `name`: the thread is in no step.
struct RunningStep {
  const char* name;
  const char* type;
  size_t index;  // in the plan, from 0
  size_t steps;  // of the plan
};

// Of this thread. Plain words without constructor, so that a signal handler may read them.
inline constinit thread_local RunningStep running_step = {nullptr, nullptr, 0, 0};

// Sets the running step of this thread as long as it lives. Thread-safety: one thread. Costs a few
// stores.
class InStep {
 public:
  explicit InStep(const RunningStep& step) {
    running_step = step;
    std::atomic_signal_fence(std::memory_order_release);
  }
  ~InStep() {
    std::atomic_signal_fence(std::memory_order_release);
    running_step.name = nullptr;
  }
  InStep(const InStep&) = delete;
  InStep& operator=(const InStep&) = delete;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_RUNNING_STEP_H_
