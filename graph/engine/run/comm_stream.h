// CommStream: the steps of one plan that run on the communication stream, beside the thread that
// runs the others. Internal to graph/engine.
//
// The stream's worker runs a step that the compute thread does not wait for yet. When the compute
// thread comes to wait before the worker began, it runs the step itself (runtime/device/stream.h).
//
// Thread-safety: one thread launches and waits.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_COMM_STREAM_H_
#define NPUMESH_GRAPH_ENGINE_RUN_COMM_STREAM_H_

#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/run/executor.h"
#include "runtime/device/stream.h"

namespace npumesh {

class CommStream {
 public:
  // `spans` has a place for each step of the model. All must outlive it.
  CommStream(CompiledModel& model, Stream& stream, std::vector<StepSpan>& spans,
             StepProfile& profile);

  // Before the first step of a run.
  void Begin();
  // `args` must stay where they are until the step is waited for. Allocates nothing once the
  // stream's queue was as long before.
  void Launch(size_t step, const KernelArgs& args);
  // Blocks until this step and those launched before it are done. Returns the first failure among
  // them, with the name of its step; the steps after that one did not run.
  Status Await(size_t step);
  // The same for all that were launched.
  Status AwaitAll();

 private:
  struct Task {
    size_t step = 0;
    Event done;
    const KernelArgs* args = nullptr;
    Status status;
  };
  // On any thread, one task at a time.
  void Run(Task& task);
  // Of the first `count` tasks, which are done.
  Status FirstFailure(size_t count);

  CompiledModel& model_;
  Stream& stream_;
  std::vector<StepSpan>& spans_;
  StepProfile& profile_;
  std::vector<Task> tasks_;    // in the order of the plan
  std::vector<size_t> index_;  // by step: in tasks_
  size_t launched_ = 0;        // of tasks_
  size_t checked_ = 0;         // of tasks_: done, and without failure
  bool failed_ = false;        // touched by tasks only, and while there are none
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_COMM_STREAM_H_
