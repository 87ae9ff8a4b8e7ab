// PlanBuilder: fills one PlanDraft with the steps of a graph, or of one static part of it.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_PLAN_BUILDER_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_PLAN_BUILDER_H_

#include <memory>
#include <optional>
#include <vector>

#include "graph/engine/analyse/graph_analysis.h"
#include "graph/engine/plan/plan_draft.h"

namespace npumesh {

struct StaticPart;

class PlanBuilder {
 public:
  // All must outlive it. `part`: the draft is that of a static part, and what the nodes of the part
  // do not compute comes from outside; null: it is that of the graph.
  PlanBuilder(const GraphAnalysis& graph, PlanDraft& draft, const StaticPart* part = nullptr);

  // Adds the step that stands where this node does, if there is one. Nodes are given in execution
  // order. Errors of the operator, without its name.
  Status AddStepOf(NodeId id);

  // The number of a value in the layout of the graph; constants, inputs and views get theirs when
  // first asked for. REQUIRES: the step that computes it is there.
  PlanIndex IndexOf(Value value);

 private:
  using Slots = std::vector<PlanIndex>;  // operands; -1: absent
  struct FusedInput {
    PlanIndex index = -1;
    TensorType type;
  };

  // The same in the layout in which the node reads it.
  PlanIndex OperandOf(NodeId id, int slot, Value value);
  // The number of a value that a fused step reads, and its type as it reads it.
  FusedInput FusedOperand(const FusedStep& fused, Value value);
  // The number of an image in blocks of channels.
  PlanIndex BlocksOf(Value value);
  // Adds the step that brings the image into blocks, or back.
  PlanIndex Reorder(Value value, bool into_blocks, PlanIndex from);
  Status AddStep(NodeId id);
  Status AddFusedStep(const FusedStep& fused);
  Step Describe(NodeId id) const;
  // Adds what the step updates to `step`.
  PlanStep PlanOf(NodeId id, Step& step, const Slots& slots);
  // What `make` makes, by the tuner where there is one and the operators of `nodes`, which the step
  // computes, allow it.
  Result<std::unique_ptr<Kernel>> Tuned(const Step& step, const std::vector<NodeId>& nodes,
                                        const std::vector<std::optional<Value>>& inputs,
                                        const KernelTuner::MakeKernel& make) const;
  // `inputs` by slot: weights among them that the kernel has packed have arrived where they belong.
  Status TakeKernel(Result<std::unique_ptr<Kernel>> kernel,
                    const std::vector<std::optional<Value>>& inputs, Step& step);
  // The operand of an output: its own storage, or that of the input it overwrites.
  PlanIndex AddOutput(NodeId id, int port, const Slots& slots);
  // Replaces constants that the node overwrites by copies that are made just before it.
  void CopyOverwrittenConstants(NodeId id, Slots& slots);
  PlanIndex CopyConstant(NodeId id, int slot, PlanIndex constant);
  // The operands whose storage an element-wise step may write its output to.
  Slots TakeOverCandidates(const Step& step, const Slots& slots) const;

  // The number of a value, or -1 for a view that has none yet.
  PlanIndex FindOrAddSource(Value value);
  PlanIndex AddInput(NodeId id);
  PlanIndex AddOutside(Value value);
  bool IsOutside(Value value) const;

  const GraphAnalysis& graph_;
  const BoundGraph& bound_;
  const Inference& inference_;
  PlanDraft& draft_;
  const StaticPart* part_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_PLAN_BUILDER_H_
