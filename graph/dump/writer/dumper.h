// Dumper: the tap that takes tensors from a run, and the end of the dump with its manifest.
//
// Inputs are taken before a step, outputs after it, so that what an operator overwrites is seen as
// it was. Tensors are copied into the writer's queue; statistics are computed where the tensor
// lies; observers that change tensors come before this one. Views, folded constants and nodes
// that no output needs have no step and no file; a graph input is dumped beside each operator that
// reads it, also through views.
//
// Thread-safety: one run at a time.
#ifndef NPUMESH_GRAPH_DUMP_WRITER_DUMPER_H_
#define NPUMESH_GRAPH_DUMP_WRITER_DUMPER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/dump/format/format_name.h"
#include "graph/dump/options/settings.h"
#include "graph/dump/statistics/operands.h"
#include "graph/dump/statistics/statistics_cache.h"
#include "graph/dump/statistics/statistics_csv.h"
#include "graph/dump/writer/dump_writer.h"
#include "graph/dump/writer/manifest.h"
#include "graph/dump/writer/place.h"
#include "graph/dump/writer/selection.h"
#include "graph/engine/run/step_observer.h"

namespace npumesh {

class Dumper final : public StepObserver {
 public:
  // Starts the writer; writes nothing yet. `fs` must outlive it.
  Dumper(DumpSettings settings, DumpPlace place, DumpLimits limits,
         FileSystem& fs = RealFileSystem());
  ~Dumper() override;

  Status BeforeRun(const RunView& run) override;
  Status BeforeStep(const StepView& view) override;
  Status AfterStep(const StepView& view) override;
  void StepFailed(const StepView& view, const Status& error) override;
  Status AfterRun(const RunView& run) override;

  // Waits until what was taken is on the disk, or lost.
  void Drain() { writer_.Drain(); }
  // Waits for the disk and writes "{time folder}/manifest.json". No run may follow. An error of the
  // dump is in the report.
  DumpReport Finish();

 private:
  // A record between BeforeStep and AfterStep.
  struct Pending {
    DumpFileName name;
    DumpRecord record;
    DumpBuffer payload;
    std::string rows;
    bool statistics = false;
  };

  Status MayGoOn() const;
  void BeginIteration(uint64_t iteration);
  void Select(const RunView& run);
  // Position of a step in the order of execution, over all plans of the iteration.
  size_t TaskOf(const StepView& view) const { return tasks_ + view.index; }
  void ForgetOutputs(const StepView& view);
  // Starts a record of a step that will take `bytes` of tensors.
  Pending Begin(const std::string& type, const std::string& name, size_t task, uint64_t bytes);
  void Take(bool input, const DumpOperand& operand, Pending& pending);
  void LeaveOut(bool input, const DumpOperand& operand, Pending& pending);
  void Submit(Pending pending, StepChoice::Layout layout);
  void TakeInputs(const StepView& view, const StepChoice& choice);
  void DumpGraphInputs(const StepView& view, const std::vector<DumpOperand>& inputs,
                       StepChoice::Layout layout);
  void DumpWatched(const StepView& view);
  void HoldInputs(const StepView& view);
  void DumpOverflow(const StepView& view);
  std::string FolderOf(StepChoice::Layout layout) const;

  const DumpSettings settings_;
  const DumpPlace place_;
  const DumpLimits limits_;
  FileSystem& fs_;
  const StatisticsCsv csv_;
  DumpWriter writer_;

  std::optional<uint64_t> iteration_;  // of the last run
  uint64_t iterations_ = 0;            // seen so far
  size_t tasks_ = 0;                   // steps of the plans before in this iteration
  bool dumping_ = false;               // this run
  std::shared_ptr<const void> model_;  // whose selection and constants are known
  std::optional<DumpSelection> selection_;
  OpenRanges open_ranges_;
  MissingOperators missing_;
  StatisticsCache statistics_;
  std::string model_name_;  // of the first plan
  std::string step_folder_;
  std::optional<Pending> pending_;
  // Overflow mode: the inputs of the current step, and the memory of those that are copied.
  std::vector<DumpOperand> held_inputs_;
  std::vector<std::max_align_t> held_;

  uint64_t admitted_bytes_ = 0;  // of tensors, given to the writer
  bool degraded_ = false;
  bool finished_ = false;
  DumpReport report_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_WRITER_DUMPER_H_
