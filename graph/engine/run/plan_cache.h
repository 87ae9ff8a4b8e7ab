// PlanCache: the plans of one graph, one for each signature of its inputs.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_PLAN_CACHE_H_
#define NPUMESH_GRAPH_ENGINE_RUN_PLAN_CACHE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/plan/lending.h"
#include "graph/engine/plan/static_parts.h"
#include "graph/engine/run/executor.h"
#include "graph/engine/run/loop_watch.h"
#include "runtime/profile/scoped_span.h"

namespace npumesh {

// A tensor in memory that another owner keeps.
struct PlanOperand {
  TensorType type;
  const void* data = nullptr;  // null: the input buffer holds the content already
  // Of an input of the main graph: what the run may do with the memory at `data`.
  Lending lending = Lending::kNone;
};

// What plans of a model have in common.
struct PlanSettings {
  const OpRegistry* registry = nullptr;
  GroupProvider* groups = nullptr;
  CompileOptions compile;
  // By node name: values of Constant nodes that the main graph does not hold itself.
  std::map<std::string, Tensor> given_weights;
  // Plans that are kept of one graph; the one that was not used for longest makes room.
  size_t max_plans = 32;
  // Told of the turns of loops; may be null. Not owned.
  LoopWatch* loops = nullptr;
  // Of the main graph; subgraphs have memory of the session.
  GivenMemory memory;
};

// Sums over all plans and runs of a program and its subgraphs.
struct ProgramStats {
  RunStats run;
  double compile_seconds = 0;
  uint64_t input_bytes = 0;   // copied from inputs of the main graph into its buffers
  uint64_t output_bytes = 0;  // copied to where the caller wants outputs, and back to its inputs
  uint64_t plans = 0;         // compilations so far
  // Steps whose kernels were made, and those that came ready from a static part.
  uint64_t steps_compiled = 0;
  uint64_t steps_shared = 0;
  uint64_t static_parts = 0;  // that were compiled
};

class PlanCache {
 public:
  struct Plan {
    std::unique_ptr<CompiledModel> model;
    std::unique_ptr<Executor> executor;
    uint64_t last_use = 0;
  };

  // All must outlive it. `slots` as for Executor::Create.
  PlanCache(const Model& model, const PlanSettings& settings, DevicePool& pool,
            std::vector<int> slots, ProgramStats& stats);

  // The plan for inputs of these types and, of inputs that decide shapes, these values; compiled
  // when it is not there. By position in InputsOf(model). A plan that is `observed` has a step for
  // each operator: nothing is fused. Valid until the next call. Errors as CompiledModel::Compile.
  Result<Plan*> For(const std::vector<PlanOperand>& inputs, bool observed);

 private:
  // What of the inputs a plan depends on.
  std::string Signature(const std::vector<PlanOperand>& inputs, bool fuses) const;
  bool TakesValue(const std::vector<PlanOperand>& inputs, size_t position) const;
  Result<std::unique_ptr<Plan>> Compile(const std::vector<PlanOperand>& inputs, bool fuses);
  void TakeStats(const CompiledModel& model);
  void ForgetOldest();

  const Model& model_;
  const PlanSettings& settings_;
  DevicePool& pool_;
  std::vector<int> slots_;
  ProgramStats& stats_;
  SpanSubject compiling_;
  std::vector<bool> shape_deciding_;                    // by position
  StaticParts fused_parts_;                             // of plans with fused steps
  StaticParts plain_parts_;                             // of the others
  std::map<std::string, std::unique_ptr<Plan>> plans_;  // by signature
  uint64_t clock_ = 0;                                  // counts uses of plans
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_PLAN_CACHE_H_
