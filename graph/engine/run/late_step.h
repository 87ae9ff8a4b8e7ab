// LateStep: an operator whose output shapes are only known after it ran (NonZero, Unique ...). It
// runs between two plans, and an observer sees it as a run of one step.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_LATE_STEP_H_
#define NPUMESH_GRAPH_ENGINE_RUN_LATE_STEP_H_

#include <memory>
#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/run/plan_cache.h"

namespace npumesh {

class LateStep {
 public:
  // `node` stands in the main graph of `source`. All must outlive it. Errors as OpContext::Bind.
  // REQUIRES: the registry of `settings` has an `evaluate` for the node's type.
  static Result<std::unique_ptr<LateStep>> Create(const Model& source, const Node& node,
                                                  const PlanSettings& settings);

  // `inputs` by input of the node; dtype kUndefined: not connected. One tensor for each output.
  // `observer`, which may be null, sees input buffers where `inputs` lie and may change the
  // outputs; before the step it has none. Errors of the operator, and of the observer.
  Result<std::vector<Tensor>> Run(const std::vector<PlanOperand>& inputs, StepObserver* observer,
                                  uint64_t iteration);

 private:
  LateStep(const Model& source, const Node& node, const Operator& op, OpContext context,
           const CompileOptions& options);
  void Bind(const std::vector<PlanOperand>& inputs);
  Status Evaluate();
  Status RunObserved(StepObserver& observer, uint64_t iteration);
  Step& step() { return model_->steps()[0]; }

  const Operator& op_;
  OpContext context_;
  std::unique_ptr<CompiledModel> model_;  // of the one step
  std::vector<const void*> in_;           // by slot
  std::vector<void*> out_;                // by port
  std::vector<Tensor> outputs_;
  const std::function<Status(const OpContext&)> check_operator_;  // may be null
  Profiler* const profiler_;                                      // null: nothing is profiled
  SpanSubject subject_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_LATE_STEP_H_
