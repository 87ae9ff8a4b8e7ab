// Program: a graph that can be run, whatever it takes: plans for the stages of the graph, the late
// operators between them, programs for its subgraphs.
//
// A graph without late operators is one stage, and a run of a known signature is one plan: no
// allocation but for the outputs. See docs/engine.md.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_PROGRAM_H_
#define NPUMESH_GRAPH_ENGINE_RUN_PROGRAM_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/engine/run/control_flow.h"
#include "graph/engine/run/output_places.h"
#include "graph/engine/run/plan_cache.h"
#include "graph/passes/rewrite/stages.h"
#include "runtime/profile/scoped_span.h"

namespace npumesh {

class Program {
 public:
  // The main graph of `model`; its nodes find their subgraphs in `library`. All must outlive it,
  // the registry included. REQUIRES: CheckModel is OK. Errors as SplitStages.
  static Result<std::unique_ptr<Program>> Create(const Model& model, const Model& library,
                                                 const PlanSettings& settings, DeviceMemory& memory,
                                                 ProgramStats& stats);
  ~Program();

  // Collective over the ranks whose graphs communicate. Inputs by position in InputsOf(model); one
  // without data keeps the content of its buffer, which a run has filled before (`held`). Errors
  // name the operator. `observer` may be null; it sees each plan and each late operator as a run of
  // its own, but If, Case and While, whose branches it sees.
  Result<std::vector<Tensor>> Run(const std::vector<PlanOperand>& inputs, StepObserver* observer,
                                  uint64_t iteration);

  // The same, with the outputs where `place` wants them; inputs that are lent are read, and
  // written, where they are. Either is copied where the plan does not allow that. REQUIRES:
  // `observer` changes no tensor. Errors also those of `place`; outputs that overlap
  // (kInvalidArgument).
  Status RunInto(const std::vector<PlanOperand>& inputs, const PlaceOutputs& place,
                 StepObserver* observer, uint64_t iteration);

  // The plan of the first stage, compiled and not run.
  Result<const CompiledModel*> Prepare(const std::vector<PlanOperand>& inputs);

  // True when the plan of the first stage computes all outputs.
  bool one_stage() const { return stages_.size() == 1; }

  // Type and bytes of what the buffer of an input holds; nullopt before its first run.
  std::optional<PlanOperand> held(int position) const;

  // Of this graph and its subgraphs: largest arenas, and constants in use.
  uint64_t arena_bytes() const;
  uint64_t constant_bytes() const;

 private:
  struct LateRunner;
  struct StageRunner;
  Program(const Model& model, const Model& library, const PlanSettings& settings,
          DeviceMemory& memory, ProgramStats& stats);
  Status AddStages();
  // One of several plans that a run of the session takes.
  bool IsPart(const StageRunner& stage) const;
  Status AddLate(const LateNode& node, StageRunner& runner);
  std::vector<PlanOperand> StageInputs(const StageRunner& stage) const;
  Status TakeInputs(const std::vector<PlanOperand>& inputs);
  // Copies a tensor into the buffer of a slot.
  Status Keep(SlotNumber slot, const TensorType& type, const void* data);
  // Where the outputs of one run go.
  struct OutputRequest {
    const PlaceOutputs& place;
    std::vector<void*> places;  // what it said
  };
  // Runs all stages; returns the plan of the last one, whose outputs are those of the graph.
  // `request` may be null.
  Result<PlanCache::Plan*> RunStages(const std::vector<PlanOperand>& inputs, StepObserver* observer,
                                     uint64_t iteration, OutputRequest* request);
  // Lets the plan work on what is lent to it, as far as it may, and copies the rest into buffers.
  // By position in the stage: where a lent input lies; null: in a buffer.
  Result<std::vector<void*>> PlaceInputs(const StageRunner& stage, const PlanCache::Plan& plan);
  // By output: where the plan computes it; null: in its arena.
  Result<std::vector<void*>> PlaceResults(const PlanCache::Plan& plan,
                                          const std::vector<PlanOperand>& inputs,
                                          const std::vector<void*>& lent,
                                          OutputRequest& request) const;
  // An operator has written the input, and did so in a buffer.
  bool GoesBack(const std::vector<PlanOperand>& inputs, size_t position) const;
  SlotNumber SlotOf(const StageRunner& stage, size_t position) const;
  // The plan of the first stage for these inputs, run under an observer or not.
  Result<PlanCache::Plan*> FirstPlan(const std::vector<PlanOperand>& inputs, bool observed);
  // Runs it and keeps what later stages read.
  Status RunPlan(const StageRunner& stage, PlanCache::Plan& plan, StepObserver* observer,
                 uint64_t iteration);
  Status RunLate(LateRunner& late, const PlanCache::Plan& plan, StepObserver* observer,
                 uint64_t iteration);

  // Where copies between host and device are told; null: of a subgraph, whose operands stay.
  Profiler* CopyProfiler() const {
    return &model_ == &library_ ? settings_.compile.profiler : nullptr;
  }

  const Model& model_;
  const Model& library_;
  PlanSettings settings_;
  DeviceMemory& memory_;
  ProgramStats& stats_;
  SpanSubject to_device_{ProfiledTask{.name = "host to device", .type = "MemcpyHostToDevice"}};
  SpanSubject to_host_{ProfiledTask{.name = "device to host", .type = "MemcpyDeviceToHost"}};
  WeightCache weights_;
  DevicePool pool_;
  std::vector<bool> written_;  // by position: inputs that an operator overwrites
  StagedModel staged_;         // no stages: the whole graph is one
  std::vector<std::unique_ptr<StageRunner>> stages_;
  std::vector<PlanOperand> slots_;               // by slot: what it holds in this run
  std::vector<std::optional<TensorType>> held_;  // by position: what was given last
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_PROGRAM_H_
