// Session: one rank, one model, many steps.
//
// Owns the communicators a graph names, compiles on the first sight of a set of input shapes and
// keeps the result, moves inputs in and outputs out.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_SESSION_SESSION_H_
#define NPUMESH_GRAPH_SESSION_SESSION_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/run/program.h"
#include "graph/guard/edge_guard.h"
#include "graph/ir/tensor.h"
#include "graph/session/frozen_inputs.h"
#include "graph/session/graph_dump.h"
#include "graph/session/group_set.h"
#include "graph/session/loop_notices.h"
#include "graph/session/session_options.h"
#include "graph/session/tensor_dump.h"
#include "graph/static_kernel/static_kernels.h"
#include "graph/tuning/tuner.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {

struct SessionStats {
  RunStats run;  // sums over all steps
  double compile_seconds = 0;
  uint64_t runs = 0;
  uint64_t plans = 0;           // compilations so far
  uint64_t steps_compiled = 0;  // steps whose kernels were made for a plan
  uint64_t steps_shared = 0;    // steps that a plan took from a static part made before
  uint64_t static_parts = 0;    // that were compiled
  uint64_t peak_hbm_bytes = 0;  // of the whole device
  uint64_t arena_bytes = 0;     // largest plan
  uint64_t constant_bytes = 0;
  uint64_t input_bytes = 0;   // copied from inputs to the device, over all runs
  uint64_t output_bytes = 0;  // copied to where RunInto wants outputs, and back to its inputs
};

// HBM: an input has one buffer for all plans, so a RefData keeps its content when the shapes of
// other inputs change; the arena is shared, because one plan runs at a time.
class Session {
 public:
  // `world` and `memory` must outlive the session. Not collective. Checks the structure of
  // the graph and its subgraphs (Graph::Verify, CheckSubgraphs), puts called graphs in the place of
  // their calls (InlineCalls), and checks that every operator is known before anything runs
  // (kUnsupported with the complete list).
  static Result<std::unique_ptr<Session>> Create(World& world, DeviceMemory& memory, Model model,
                                                 SessionOptions options = {});
  ~Session();

  const Model& model() const { return model_; }
  const std::vector<InputSpec>& inputs() const { return inputs_; }

  // Collective over the ranks whose graphs communicate. Inputs by position in `inputs()`. A RefData
  // input whose tensor is empty (default Tensor) keeps its content from the run before. A frozen
  // parameter is taken from the first run, which keeps its tensor; later it is empty or the same.
  // `observer`, which may be null, sees each step; its iterations count the runs of this session.
  // Errors: kInvalidArgument names the input, expected and seen; run-time errors name the operator.
  // If the graph communicates, an error is published, so that no rank waits for this one (Fail).
  Result<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs,
                                  StepObserver* observer = nullptr);

  // The same on memory of the caller: inputs are read where they are, in-place operators write into
  // those that allow it (Lending), and outputs go where `place` says. Either is copied where the
  // plan cannot work on the caller's memory (docs/c_api.md); stats() counts the bytes. An input
  // without a dtype stands for an empty tensor. A frozen parameter has to stay where it is until
  // the session ends. After an error the content of what may be written is not defined. Errors also
  // those of `place`, and outputs that overlap.
  Status RunInto(const std::vector<PlanOperand>& inputs, const PlaceOutputs& place,
                 StepObserver* observer = nullptr);

  // The content of a RefData input after the last run. kInvalidArgument: no RefData is at
  // `position`, or it was never given.
  Result<Tensor> ReadRef(int position) const;

  // Compiles for these inputs without running, up to the first operator whose output shapes are
  // only known after it ran. Collective as Run; errors as Run.
  Result<const CompiledModel*> Prepare(const std::vector<Tensor>& inputs);

  // Prepare for inputs without memory: the types of the outputs, without a dtype where only a run
  // can tell them. Nothing is compiled for inputs with open dimensions, and none for frozen ones
  // that have no memory and were never given.
  Result<std::vector<TensorType>> OutputTypes(const std::vector<PlanOperand>& inputs);

  // Dumps as `options` say, from the first run on, unless the session's own options ask for a dump:
  // they win. REQUIRES: nothing ran yet.
  void DumpTensors(const TensorDumpOptions& options);
  // Tunes as `options` say, unless the session's own options do: they win. Errors as Create.
  // REQUIRES: nothing ran yet.
  Status Tune(const TuningOptions& options);
  // Computes as `options` say, unless the session's own options do: they win. A session whose
  // parameters are frozen for inference leaves those out that the graph overwrites. Errors as
  // ApplyPrecision. REQUIRES: nothing ran yet.
  Status UsePrecision(const PrecisionOptions& options);
  // Keeps what static kernels are made from in kernel_meta, below ASCEND_WORK_PATH or the working
  // folder (docs/static_kernels.md). Level 0 keeps nothing. A session without static kernels says
  // in one warning how to get them. Errors as StaticKernels::KeepMeta. REQUIRES: nothing ran yet;
  // `level` is in [0, 4].
  Status DebugKernels(int64_t level);
  // Waits until everything is dumped; no run may follow. An error of the dump is in the report,
  // which is empty when nothing is dumped. The destructor does the same.
  DumpReport FinishDump();

  // This rank fails in the session's next call, or has just failed in it. If the graph
  // communicates, the others hear of it, and fail in the same call with its reason; all can go on
  // with the next one, of this session or another (FailTogether). A failure in the middle of a
  // collective is final (Board::PublishFailure). Returns `status`. Local but for ComeBack.
  Status Fail(const Status& status);

  const SessionStats& stats() const { return stats_; }
  // Null when the options ask for none.
  const StaticKernelStats* static_kernel_stats() const {
    return static_kernels_ == nullptr ? nullptr : &static_kernels_->stats();
  }
  // Null when nothing is tuned.
  const TuningStats* tuning_stats() const { return tuner_ == nullptr ? nullptr : &tuner_->stats(); }
  // Null when no card is checked.
  const NodeWatch* card() const { return options_.card.get(); }
  Communicator::Totals communication() const { return groups_->totals(); }

 private:
  Session(World& world, DeviceMemory& memory, Model model, SessionOptions options);
  // Before plans are made: has writes past outputs of operators of libraries found.
  void GuardEdges();
  Status Check();
  Status ChoosePrecision();
  Status FindFrozen();
  Status PrepareStaticKernels();
  // REQUIRES: static kernels are prepared.
  void PrepareTuning();
  bool HasOpenDimensions() const;
  Status KeepKernelMeta(int64_t level);
  std::vector<int64_t> OpenSizes(const std::vector<PlanOperand>& operands) const;
  // What a run does before and after the program.
  template <typename Body>
  auto Profiled(StepObserver* observer, Body body);
  // A run has gone well.
  void EndRun();
  // The operands of the program for these inputs, with everything in place that it needs.
  Result<std::vector<PlanOperand>> Ready(const std::vector<PlanOperand>& inputs);
  Result<const CompiledModel*> PrepareProgram(const std::vector<PlanOperand>& inputs);
  Result<std::vector<TensorType>> TypesOfOutputs(const std::vector<PlanOperand>& inputs);
  Result<std::vector<PlanOperand>> OperandsOf(const std::vector<PlanOperand>& inputs) const;
  // The main graph with its stages; again after inputs are frozen, because they are constants then.
  Status MakeProgram();
  Status Freeze(const std::vector<PlanOperand>& inputs);
  // What a RefData holds; nullopt when it was never given, or is no RefData.
  std::optional<PlanOperand> HeldRef(int position) const;
  // The compile options, with the graph dump looking on and what the environment says.
  CompileOptions Observed();
  void WriteSummary();
  void TakeStats();
  // INFO, when there is something new.
  void TellTuning();
  // Fail, unless it is OK.
  Status Publish(const Status& status);
  // Numbers the session among those that this rank has in common with each other rank.
  void NumberAmongPeers();
  // The ranks with which the graph may communicate.
  std::set<int> Peers();

  World& world_;
  DeviceMemory& memory_;
  Model model_;
  SessionOptions options_;
  const OpRegistry* registry_;
  std::vector<InputSpec> inputs_;
  std::unique_ptr<Tuner> tuner_;  // null: nothing is tuned
  TuningStats told_tuning_;
  std::unique_ptr<StaticKernels> static_kernels_;  // null: none are made
  FrozenInputs frozen_;
  std::vector<std::string> group_names_;  // that the graph's collectives use
  std::unique_ptr<GroupSet> groups_;
  std::map<int, uint64_t> numbers_;  // of this session, by the rank it is shared with
  uint64_t calls_ = 0;               // runs, and calls that failed before one
  uint64_t torn_ = 0;                // Totals::torn after the last failure
  GraphDump graph_dump_;
  std::unique_ptr<TensorDump> tensor_dump_;  // null: nothing is dumped
  // Null: the graph has no operator of a library, a guard of the caller checks all memory, or
  // collectives run on a second stream.
  std::unique_ptr<EdgeGuard> edge_guard_;
  LoopNotices loops_;
  ProgramStats program_stats_;
  std::unique_ptr<Program> program_;
  SessionStats stats_;
  SpanSubject iterations_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_SESSION_H_
