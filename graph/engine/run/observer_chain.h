// ObserverChain: several observers of one run, told in order.
//
// Thread-safety: the chain calls its observers on the thread that calls it, and keeps no state
// beside them.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_OBSERVER_CHAIN_H_
#define NPUMESH_GRAPH_ENGINE_RUN_OBSERVER_CHAIN_H_

#include <vector>

#include "graph/engine/run/step_observer.h"

namespace npumesh {

// The first error of an observer ends the run; observers after it are not told.
class ObserverChain final : public StepObserver {
 public:
  // `observer` must outlive the chain; null is left out.
  void Add(StepObserver* observer) {
    if (observer != nullptr) observers_.push_back(observer);
  }
  bool empty() const { return observers_.empty(); }

  // True when one of them does.
  bool needs_each_operator() const override;
  Status BeforeRun(const RunView& run) override;
  Status BeforeStep(const StepView& view) override;
  Status AfterStep(const StepView& view) override;
  void StepFailed(const StepView& view, const Status& error) override;
  Status AfterRun(const RunView& run) override;

 private:
  std::vector<StepObserver*> observers_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_OBSERVER_CHAIN_H_
