// RunJob: one rank's part of `npumesh run`: its graph, its inputs, outputs and goldens.
#ifndef NPUMESH_LAUNCH_RUN_RUN_JOB_H_
#define NPUMESH_LAUNCH_RUN_RUN_JOB_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/compare/sources/recorder.h"
#include "graph/engine/run/observer_chain.h"
#include "graph/guard/memory_guard.h"
#include "graph/inject/fault_injector.h"
#include "graph/session/profiling.h"
#include "graph/session/session.h"
#include "launch/ranks/warnings.h"
#include "launch/run/input_source.h"
#include "launch/run/run_options.h"
#include "launch/run/run_report.h"
#include "launch/run/tensor_folder.h"
#include "launch/run/tolerance.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {

class RunJob {
 public:
  // Both must outlive the job.
  RunJob(World& world, const RunOptions& options) : world_(world), options_(options) {}

  // Collective over the ranks of this node. Binds the rank, makes its device memory, loads its
  // graph and checks everything that can be checked before anything runs.
  Status Prepare();

  // What the user should know of what was named, by this rank. Local.
  const Warnings& warnings() const { return warnings_; }

  // Inputs and goldens of a step, ready for RunStep. Local.
  Status LoadStep(uint64_t step);

  // Collective over the ranks whose graphs communicate. Runs the step that was loaded, writes and
  // checks its outputs.
  Status RunStep(uint64_t step);

  // After all steps: kNotFound for a fault whose operator never ran. Local.
  Status CheckFaults() const { return injector_ != nullptr ? injector_->CheckFound() : Status(); }

  // Waits until everything is dumped. Local; no step may follow. An error of the dump is returned
  // only if it is to stop the run.
  Status FinishDump();

  // Collective over all ranks: from here to FinishProfile everything is profiled, if it was asked
  // for. `alone`: the other ranks are not asked for the time, because some are lost.
  Status StartProfile();
  Status FinishProfile(bool alone);

  // False before Prepare has succeeded: then there is nothing to report.
  bool prepared() const { return source_ != nullptr; }
  // REQUIRES: prepared().
  RankReport Report() const;
  const std::vector<OutputCheck>& checks() const { return checks_; }
  // Of the last step, where a user would see nothing of it otherwise, or a report wants it.
  const std::vector<OutputSummary>& outputs() const { return summaries_; }

  // Steps that the guard has checked, and how many of them ran twice; 0 without a guard.
  uint64_t guarded_steps() const { return guard_ != nullptr ? guard_->steps() : 0; }
  uint64_t repeated_steps() const { return guard_ != nullptr ? guard_->repeated() : 0; }

  // What the card would not take, as far as it was seen; null: nothing is asked.
  const CardFindings* card() const { return card_ != nullptr ? &card_->findings() : nullptr; }

  // With a golden: all tensors of the first step, and the inputs it ran with. Null otherwise.
  const Recorder* recorder() const { return recorder_.get(); }
  const std::vector<Tensor>& recorded_inputs() const { return recorded_inputs_; }
  // What rounds before the outputs of this rank's operators, for a comparison with a golden.
  Result<OperatorRoundings> Roundings() const {
    return estimate_.OperatorsOf(session_->model(), *registry_, world_.size());
  }
  DeviceMemory& memory() { return *memory_; }
  const Session& session() const { return *session_; }
  // The operators of the run: the built-in ones and those of the libraries.
  const OpRegistry& registry() const { return *registry_; }

 private:
  Status Bind() const;
  int Threads() const;
  Result<SessionOptions> ConfiguredSession();
  Result<std::optional<ProfilingOptions>> ChosenProfiling(const SystemOptions& session) const;
  Result<Model> LoadFile();
  Status LoadGraph(SessionOptions session);
  Status OpenFolders();
  Status MakeRandomInputs();
  Status OpenGoldens();
  // Notes types for the tolerance, if anything is compared.
  void WatchTypes(CompileOptions* options);
  // An error of the graph, with the name of its file; success stays success.
  Status AtFile(const Status& status) const;
  Status AddObservers();
  Status KeepOutput(uint64_t step, size_t index, const Tensor& output);
  void Check(uint64_t step, size_t index, const Tensor& output);
  // Adds the seconds of a step outside of collectives to those of its stretch.
  void NoteAway(uint64_t step, double seconds);
  AppliedTolerance ToleranceOf(uint64_t step, size_t index, const Tensor& output);

  World& world_;
  const RunOptions& options_;
  std::string file_;
  bool is_bound_ = false;  // the open dimensions of the options are bound in the graph
  DimNames dim_names_;
  std::shared_ptr<const OpRegistry> registry_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<NodeWatch> card_;  // null: no card
  RankDump dump_;
  std::optional<ProfilingOptions> profiling_;
  Warnings warnings_;
  std::map<int64_t, int64_t> reader_bounds_;  // of random integers, by data index
  std::unique_ptr<InputSource> source_;
  std::optional<TensorFolder> outputs_;
  std::optional<TensorFolder> goldens_;
  size_t output_count_ = 0;
  std::vector<Tensor> step_inputs_;
  std::vector<Tensor> step_goldens_;
  std::vector<OutputCheck> checks_;
  std::vector<OutputSummary> summaries_;
  TolerancePlan tolerances_;
  RoundingEstimate estimate_;
  std::vector<RoundingPath> roundings_;      // by output; empty: to be made from the estimate
  std::unique_ptr<FaultInjector> injector_;  // null: no faults
  std::unique_ptr<MemoryGuard> guard_;       // null: no guard
  std::unique_ptr<Recorder> recorder_;       // null: no golden
  std::vector<Tensor> recorded_inputs_;
  ObserverChain observers_;  // the injector first, so that the others see what it did
  double step_seconds_ = 0;
  std::vector<double> each_seconds_;  // of the first steps
  std::vector<double> away_seconds_;  // as RankReport has it
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_RUN_JOB_H_
