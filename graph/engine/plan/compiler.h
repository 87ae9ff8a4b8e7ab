// Compiler: how a CompiledModel comes about. One object for one compilation.
//
//   GraphAnalysis  bind -> needed nodes -> execution order -> inference and folding
//                  -> needed nodes again -> fusion
//   PartChoice     static parts
//   PlanBuilder    steps: kernels, operands as numbered values (PlanDraft)
//   Compiler       streams -> memory plan -> addresses
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_COMPILER_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_COMPILER_H_

#include <memory>
#include <vector>

#include "graph/engine/analyse/graph_analysis.h"
#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/plan/part_choice.h"
#include "graph/engine/plan/parts_in_plan.h"
#include "graph/engine/plan/plan_builder.h"
#include "graph/engine/plan/plan_draft.h"

namespace npumesh {

class Compiler {
 public:
  // All must outlive it. Arguments and errors as CompiledModel::Compile.
  Compiler(const Model& model, const OpRegistry& registry, GroupProvider* groups,
           const CompileOptions& options);

  Result<std::unique_ptr<CompiledModel>> Run(const std::vector<TensorType>& input_types,
                                             const std::vector<Tensor>& values);

 private:
  // Fills the draft.
  Status MakeSteps();
  // Numbers the graph outputs. Errors when they differ from what NetOutput declares.
  Status TakeOutputs();
  Status CheckOutput(const Node& sink, size_t index) const;

  // The model's share of the draft, with addresses.
  void Finish();
  // Which steps run beside others.
  void AssignStreams();
  void AssignAddresses(const MemoryPlan& plan);
  // Finds the constants that are read while the graph runs.
  void MarkConstants();
  void TakeFacts(const MemoryPlan& plan);
  void TakeNodeFacts();
  void Trace(const MemoryPlan& plan) const;

  // What observers see.
  Status ObserveOptimized() const;
  Model OptimizedGraph(const Model& typed, const std::vector<NodeId>& order) const;
  Model BuiltGraph() const;

  const CompileOptions& options_;
  GraphAnalysis analysis_;
  const Graph& graph_;
  PartChoice choice_;
  PlanDraft draft_;
  PlanBuilder builder_;
  PartsInPlan parts_;
  std::vector<PlanIndex> outputs_;  // by graph output
  std::unique_ptr<CompiledModel> result_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_COMPILER_H_
