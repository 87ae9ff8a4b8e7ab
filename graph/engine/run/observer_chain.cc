#include "graph/engine/run/observer_chain.h"

#include <algorithm>

namespace npumesh {

bool ObserverChain::needs_each_operator() const {
  return std::any_of(observers_.begin(), observers_.end(),
                     [](const StepObserver* observer) { return observer->needs_each_operator(); });
}

Status ObserverChain::BeforeRun(const RunView& run) {
  for (StepObserver* observer : observers_) NPUMESH_RETURN_IF_ERROR(observer->BeforeRun(run));
  return Status();
}

Status ObserverChain::BeforeStep(const StepView& view) {
  for (StepObserver* observer : observers_) NPUMESH_RETURN_IF_ERROR(observer->BeforeStep(view));
  return Status();
}

Status ObserverChain::AfterStep(const StepView& view) {
  for (StepObserver* observer : observers_) NPUMESH_RETURN_IF_ERROR(observer->AfterStep(view));
  return Status();
}

void ObserverChain::StepFailed(const StepView& view, const Status& error) {
  for (StepObserver* observer : observers_) observer->StepFailed(view, error);
}

Status ObserverChain::AfterRun(const RunView& run) {
  for (StepObserver* observer : observers_) NPUMESH_RETURN_IF_ERROR(observer->AfterRun(run));
  return Status();
}

}  // namespace npumesh
