// What the fusion passes ask about a graph, and the steps they have found. Internal to
// graph/passes.
#ifndef NPUMESH_GRAPH_PASSES_FUSION_FUSION_VIEW_H_
#define NPUMESH_GRAPH_PASSES_FUSION_FUSION_VIEW_H_

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/ops/image/convolution.h"
#include "graph/passes/fusion/fusion.h"

namespace npumesh {

class FusionView {
 public:
  explicit FusionView(const FusionInput& input);

  const std::vector<NodeId>& order() const { return input_.order; }
  const Node& node(NodeId id) const { return input_.graph.node(id); }
  const Operator& op(NodeId id) const { return *input_.graph.op(id); }
  // REQUIRES: the node is an operator.
  const OpContext& context(NodeId id) const { return input_.context(id); }
  // The same with the types of the graph.
  const OpContext& PlainContext(NodeId id) const {
    return input_.plain_context != nullptr ? input_.plain_context(id) : input_.context(id);
  }
  // What a node of Conv2D or DepthwiseConv2D computes, and how its images lie.
  Result<Convolution> ConvolutionOf(NodeId id) const;
  std::optional<Value> SlotValue(NodeId id, int slot) const {
    return input_.graph.SlotValue(id, slot);
  }
  // The values of all slots.
  std::vector<std::optional<Value>> SlotValues(NodeId id) const;

  // An operator that runs and that no step has taken yet.
  bool Free(NodeId id) const;
  // The same, of one of these types.
  bool Is(NodeId id, std::initializer_list<std::string_view> types) const;
  // The free operator whose output 0 is fed to the slot; kNoNode: no such operator.
  NodeId Producer(NodeId id, int slot) const;
  // The same, or a view.
  NodeId Maker(NodeId id, int slot) const;
  // The free operator that alone reads the node's outputs, in however many slots; kNoNode: none,
  // several, or the graph's output.
  NodeId OnlyReader(NodeId id) const;
  // The slot of the first of two operands that is not fed by `producer`; -1: none is, or both are.
  int OtherSlot(NodeId id, NodeId producer) const;
  // The element of a constant that has only one.
  std::optional<double> Scalar(NodeId id, int slot) const;

  // An operator that runs, taken or not.
  bool Runs(NodeId id) const { return input_.graph.op(id) != nullptr && !input_.known({id, 0}); }
  // Place in the execution order. REQUIRES: it runs.
  int Place(NodeId id) const { return position(id); }
  bool IsRead(Value value) const;
  // Only `nodes` read the outputs of `id`.
  bool OnlyReadInside(NodeId id, const std::vector<NodeId>& nodes) const;
  // A node other than `nodes` reads the value, or a view of it that is among `nodes`. The end of
  // the graph is such a node.
  bool IsReadOutside(Value value, const std::vector<NodeId>& nodes) const;
  // A node other than `nodes` reads the value, or a view of it, at `place` or before it.
  bool IsReadUntil(Value value, const std::vector<NodeId>& nodes, int place) const;
  // An operator that runs, is no part of a step yet, and gives the bytes of its slot 0 under
  // another shape.
  bool IsFreeView(NodeId id) const { return Free(id) && op(id).view && !op(id).retypes; }

  // Sorts the nodes into execution order. Empty when they may run as one step where the last one
  // stands, which is no view: see Fuse; and nothing between the first and the last overwrites in
  // place what one of them reads. Nor may one of them compute one of `inputs`, which the step
  // reads. `outputs` are the values that the step writes: others read them after its end only, and
  // nothing else of what the nodes compute; empty: output 0 of the last node, and no other port is
  // read at all. Otherwise a literal that says why not.
  std::string_view WhyNotFuse(std::vector<NodeId>& nodes,
                              const std::vector<std::optional<Value>>& inputs = {},
                              const std::vector<Value>& outputs = {}) const;

  // Takes the nodes of a step, which WhyNotFuse has sorted, and names the step.
  void Take(FusedStep step);
  // Remembers why a pass leaves the place where its pattern begins. REQUIRES: once for each anchor;
  // `why` is a literal.
  void Refuse(std::string_view pass, NodeId anchor, std::string_view why) {
    found_.refusals.push_back({pass, anchor, why});
  }
  Fusions TakeFusions() { return std::move(found_); }

 private:
  int position(NodeId id) const { return position_[static_cast<size_t>(id)]; }
  bool StaysWhole(Value value, int first, int last) const;
  bool Reads(NodeId reader, Value value) const;
  // The value, or one whose bytes it is, is computed by one of `nodes`.
  bool IsComputedBy(const std::vector<NodeId>& nodes, Value value) const;
  // Of one of several nodes that stand at [first, last].
  std::string_view WhyNotPartOf(const std::vector<NodeId>& nodes, NodeId id, int first,
                                int last) const;
  // Of the outputs of one of several nodes, see WhyNotFuse.
  std::string_view WhyNotGive(const std::vector<NodeId>& nodes, NodeId id,
                              const std::vector<Value>& outputs) const;

  const FusionInput& input_;
  // By node id.
  std::vector<int> position_;  // in the order; -1: does not run
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> ordered_;  // has a control edge, in or out
  std::vector<bool> taken_;
  Fusions found_;
};

// The passes. Each takes what it finds.
void FuseAttention(FusionView& view);
void FuseRotary(FusionView& view);
void FuseLayerNorm(FusionView& view);
void FuseRmsNorm(FusionView& view);
void FuseMatMul(FusionView& view);
void FuseConvolution(FusionView& view);
void FuseStatic(FusionView& view, StaticKernelSource& source);
void FuseElementwise(FusionView& view);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_FUSION_FUSION_VIEW_H_
