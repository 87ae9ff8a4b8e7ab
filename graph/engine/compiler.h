// Compiler: how a CompiledModel comes about. One object for one compilation.
//
//   GraphAnalysis  bind -> needed nodes -> execution order -> inference and folding
//                  -> needed nodes again -> fusion
//   PartChoice     static parts
//   PlanBuilder    steps: kernels, operands as numbered values (PlanDraft)
//   Compiler       streams -> memory plan -> addresses
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_COMPILER_H_
#define NPUMESH_GRAPH_ENGINE_COMPILER_H_

#include <memory>
#include <vector>

#include "graph/engine/compiled_model.h"
#include "graph/engine/graph_analysis.h"
#include "graph/engine/part_choice.h"
#include "graph/engine/parts_in_plan.h"
#include "graph/engine/plan_builder.h"
#include "graph/engine/plan_draft.h"

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
  // Finds the constants that somebody reads while the graph runs.
  void MarkConstants();
  void TakeFacts(const MemoryPlan& plan);
  void TakeNodeFacts();
  void Trace(const MemoryPlan& plan) const;

  // What observers see.
  Status ObserveOptimized() const;
  Model OptimizedGraph(const Model& typed, const std::vector<NodeId>& order) const;
  Model BuiltGraph() const;

  // Number of a value in the memory plan; the numbers are the Compiler's own.
  using PlanIndex = int;

  Status TakeInputs(const std::vector<TensorType>& input_types, const std::vector<Tensor>& values,
                    const std::vector<bool>& needed);
  void FindFusions();
  // The node whose place and name the step has that computes this one.
  NodeId StepNodeOf(NodeId id) const;
  Status MakeSteps();
  // The step that stands where this node does, if there is one.
  Status MakeStepOf(NodeId id);
  Status MakeStep(NodeId id);
  Status MakeFusedStep(const FusedStep& fused);
  void Describe(NodeId id, Step& step) const;
  // `inputs` by slot: weights among them that the kernel has packed have arrived where they belong.
  Status TakeKernel(Result<std::unique_ptr<Kernel>> kernel,
                    const std::vector<std::optional<Value>>& inputs, Step& step);
  // The operand of an output: its own storage, or that of the input it overwrites.
  PlanIndex AddOutput(NodeId id, int port, const std::vector<PlanIndex>& slots);
  // Replaces constants that the node overwrites by copies that are made just before it.
  void CopyOverwrittenConstants(NodeId id, std::vector<PlanIndex>& slots);
  // The operands whose storage an element-wise step may write its output to.
  std::vector<PlanIndex> TakeOverCandidates(const Step& step,
                                            const std::vector<PlanIndex>& slots) const;
  Status TakeOutputs();
  // Which steps run beside others. This and what follows it here: compiler_plan.cc.
  void AssignStreams();
  void AssignAddresses();
  void TakeFacts(const MemoryPlan& plan);
  // What the blocks of the plan hold, but for those of static parts.
  std::vector<PlannedTensor> NamedBlocks(const MemoryPlan& plan) const;
  void TakeNodeFacts();
  std::map<PlanIndex, std::string> ValueNames() const;
  void Trace(const MemoryPlan& plan) const;
  // Finds the constants that somebody reads while the graph runs.
  void MarkConstants();

  // The number of a value; constants, inputs and views get theirs when first asked for.
  PlanIndex IndexOf(Value value);
  // The same, or -1 for a view that has no number yet.
  PlanIndex FindOrAddSource(Value value);
  PlanIndex AddValue(const PlanValue& value, Address address);
  PlanIndex StorageOf(PlanIndex index) const;
  PlanIndex AddConstant(const Tensor& tensor);
  PlanIndex AddInput(NodeId id);
  // A value that the part which is being compiled reads and does not compute.
  PlanIndex AddOutside(Value value);

  // Static parts: compiler_parts.cc.

  // A part in this plan.
  struct UsedPart {
    StaticPart* part = nullptr;
    PlanIndex block = -1;                  // holds what its steps write for each other
    std::vector<PlanIndex> results;        // by result; -1: not there yet
    std::map<uint64_t, PlanIndex> inside;  // by byte in the block
    std::vector<size_t> steps;             // by step of the part: its index in the plan
    bool compiled_now = false;
  };
  // Steps and values while they are made; a part is made apart from the rest.
  struct Draft {
    std::vector<Step> steps;
    std::vector<Tensor> constants;
    uint64_t scratch_bytes = 0;
    std::map<Value, PlanIndex> index;
    std::map<std::pair<const void*, uint64_t>, PlanIndex> constant_index;
    std::vector<PlanValue> values;
    std::vector<Address> addresses;
    std::vector<PlanStep> plan_steps;
    std::vector<std::vector<PlanIndex>> step_slots;
  };
  bool shares_parts() const {
    return options_.static_parts != nullptr && options_.static_parts->lower_limit() >= 0;
  }
  Status FindStaticOperators();
  // Chooses the parts in the first compilation; in all, finds those that fit this one.
  void UseParts();
  void ChooseFirstParts(const std::vector<std::vector<NodeId>>& fusions);
  void Remember(const std::vector<bool>& is_static);
  // By part: the storages of its nodes that others read.
  std::vector<std::set<Value>> StoragesReadOutside(const std::vector<StaticPart>& parts) const;
  bool Fits(const StaticPart& part, const std::vector<std::vector<NodeId>>& fusions,
            const std::set<Value>& read_outside) const;
  // The part of this plan that the node belongs to; null: none.
  UsedPart* PartOf(NodeId id);
  // Exchanges what is being made for `draft`.
  void Swap(Draft& draft);
  void CompilePart(UsedPart& used, ErrorList& errors);
  void FinishPart(StaticPart& part);
  PartOperand OperandOf(PlanIndex index, const MemoryPlan& plan,
                        const std::map<PlanIndex, size_t>& results) const;
  void TakePartStep(UsedPart& used, NodeId id);
  PlanIndex IndexOf(UsedPart& used, const PartOperand& operand);
  void TakePartFacts(const MemoryPlan& plan);

  const Model& model_;
  const Graph& graph_;
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

#endif  // NPUMESH_GRAPH_ENGINE_COMPILER_H_
