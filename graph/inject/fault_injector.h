// FaultInjector: makes the faults of one rank happen while its model runs.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_INJECT_FAULT_INJECTOR_H_
#define NPUMESH_GRAPH_INJECT_FAULT_INJECTOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/engine/run/step_observer.h"
#include "graph/inject/fault.h"

namespace npumesh {

class FaultInjector final : public StepObserver {
 public:
  // Keeps those of `faults` that are for `rank`; `seed` picks elements. What observes a run for
  // another purpose must look after this one, or it would see the step as it was before.
  FaultInjector(const std::vector<Fault>& faults, int rank, uint64_t seed);

  // Errors: kNotFound when no step of the model has the name of a fault's operator. Of a graph with
  // several plans only CheckFound can tell.
  Status BeforeRun(const RunView& run) override;
  // Delays; ends the process for kill and exit.
  Status BeforeStep(const StepView& view) override;
  // Corrupts. Errors (kInvalidArgument) name the operator: no such output or element.
  Status AfterStep(const StepView& view) override;

  // After the runs: kNotFound for a fault whose operator was in none of them.
  Status CheckFound() const;

 private:
  struct Planted {
    Fault fault;
    bool found = false;  // a plan has its operator
  };
  bool Strikes(const Fault& fault, const StepView& view) const;
  Status Corrupt(const Fault& fault, const StepView& view) const;

  std::vector<Planted> faults_;
  uint64_t seed_;
  std::optional<uint64_t> iteration_;  // of the last run
  bool first_plan_ = true;             // the run is the first of its iteration
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_INJECT_FAULT_INJECTOR_H_
