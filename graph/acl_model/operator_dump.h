// OperatorDump: the tensors of operators that run by themselves on a device, on the disk when their
// run ends. They are one long iteration, whose tasks are numbered as they run.
//
// Thread-safety: one run at a time.
#ifndef NPUMESH_GRAPH_ACL_MODEL_OPERATOR_DUMP_H_
#define NPUMESH_GRAPH_ACL_MODEL_OPERATOR_DUMP_H_

#include "graph/dump/writer/dumper.h"
#include "graph/engine/run/step_observer.h"
#include "runtime/world/world.h"

namespace npumesh {

class OperatorDump final : public StepObserver {
 public:
  OperatorDump(const DumpSettings& settings, World& world)
      : dumper_(settings, NextDumpPlace(world), {}) {}

  Status BeforeRun(const RunView& run) override;
  Status BeforeStep(const StepView& view) override { return dumper_.BeforeStep(view); }
  Status AfterStep(const StepView& view) override { return dumper_.AfterStep(view); }
  void StepFailed(const StepView& view, const Status& error) override {
    dumper_.StepFailed(view, error);
  }
  Status AfterRun(const RunView& run) override;

  // No run may follow.
  void Finish() { dumper_.Finish(); }

 private:
  Dumper dumper_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACL_MODEL_OPERATOR_DUMP_H_
