// Compiler: how a CompiledModel comes about. One object for one compilation.
//
//   bind -> needed nodes -> execution order -> inference and folding -> needed nodes again
//        -> fusion -> static parts -> steps (kernels, operands as numbered values) -> streams
//        -> memory plan -> addresses
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_COMPILER_H_
#define NPUMESH_GRAPH_ENGINE_COMPILER_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/engine/compiled_model.h"
#include "graph/engine/inference.h"
#include "graph/engine/static_parts.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/fusion/fusion.h"
#include "graph/passes/schedule/memory_plan.h"
#include "runtime/base/error_list.h"

namespace npumesh {

class Compiler {
 public:
  Compiler(const Model& model, const OpRegistry& registry, GroupProvider* groups,
           const CompileOptions& options);

  Result<std::unique_ptr<CompiledModel>> Run(const std::vector<TensorType>& input_types,
                                             const std::vector<Tensor>& values);

 private:
  // Nodes that run, or that a node that runs reads; without folding and dropping, all.
  std::vector<bool> Needed(const std::function<bool(Value)>& known) const;
  // Known before the graph runs, and taken from there: weights, answers of shape queries and,
  // unless folding is off, whatever is computed from them.
  bool Folded(Value value) const;
  // Folded, and the output of an operator, which has no step then.
  bool Replaced(Value value) const;
  Result<std::vector<NodeId>> Order() const;
  // Whatever a kept node reads is known or made by a kept node.
  Status CheckProducers() const;
  // Those of `order` that are needed.
  std::vector<NodeId> Kept(const std::vector<NodeId>& order) const;
  Status ObserveOptimized() const;
  Model OptimizedGraph(const Model& typed, const std::vector<NodeId>& order) const;
  Model BuiltGraph() const;

  // Number of a value in the memory plan; the numbers are the Compiler's own.
  using PlanIndex = int;

  Status TakeInputs(const std::vector<TensorType>& input_types, const std::vector<Tensor>& values,
                    const std::vector<bool>& needed);
  void FindFusions();
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
  // Finds the constants that are read while the graph runs.
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
  BoundGraph bound_;
  Inference inference_;
  GroupProvider* groups_;
  WeightCache own_weights_;
  std::unique_ptr<CompiledModel> result_;

  std::map<NodeId, int> positions_;  // of Data and RefData
  std::map<NodeId, Inference::Input> inputs_;
  std::vector<bool> needed_;  // by node id
  std::vector<NodeId> order_;
  std::vector<FusedStep> fused_;
  // By each node of a fused step: the step, whose place is that of its last node.
  std::map<NodeId, const FusedStep*> fused_by_node_;
  std::map<Value, PlanIndex> index_;
  std::map<std::pair<const void*, uint64_t>, PlanIndex> constant_index_;  // host address and bytes
  std::vector<PlanValue> values_;
  std::vector<Address> addresses_;  // by plan index; kArena ones get their offset at the end
  std::vector<PlanStep> plan_steps_;
  std::vector<std::vector<PlanIndex>> step_slots_;  // by step; -1: absent
  std::vector<PlanIndex> output_index_;

  bool chooses_parts_ = false;  // as the first compilation of the graph
  std::vector<bool> static_;    // by node id, then
  std::vector<UsedPart> used_parts_;
  std::map<NodeId, size_t> part_by_node_;  // index into used_parts_
  StaticPart* making_ = nullptr;           // the part that is being compiled
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_COMPILER_H_
