// LayoutPlan: the layouts of all values of a graph, decided once for all ranks.
//
// Layouts flow from the inputs to the outputs. A product with a weight is split along the columns
// of the weight; the operators after it carry the split up to a product that sums over the split
// axis, which is split along the rows of its weight and summed over all ranks. Where an operator
// needs a product to be split in another way (in blocks, in fewer pieces, not at all), the walk
// begins again with that wish. What cannot carry a split gets the gathered value.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_SHARD_LAYOUT_PLAN_H_
#define NPUMESH_GRAPH_SHARD_LAYOUT_PLAN_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/engine/analyse/graph_analysis.h"
#include "graph/shard/layout_rules.h"
#include "graph/shard/shard_model.h"

namespace npumesh {

class LayoutPlan {
 public:
  // `analysis` has types of one set of sizes; it must outlive the plan.
  LayoutPlan(const GraphAnalysis& analysis, int ranks);

  // Errors as ShardModel.
  Status Decide();

  const Graph& graph() const { return analysis_.graph(); }
  const GraphAnalysis& analysis() const { return analysis_; }
  const Inference& inference() const { return analysis_.inference(); }
  int ranks() const { return ranks_; }
  // Nodes that the graphs of the ranks need, in execution order, without inputs and weights.
  const std::vector<NodeId>& order() const { return order_; }
  // How the node takes its inputs and leaves its outputs; null: everything is whole.
  const RuleAnswer* answer(NodeId id) const;
  // Of a value after its sum over all ranks, if it needs one.
  const ShardLayout& layout(Value value) const;
  // Its value is the same whatever the inputs of the graph are.
  bool known(Value value) const { return known_[static_cast<size_t>(value.node)]; }
  // A known value, computed now where it is too large to have been folded. Errors are those of
  // kernels.
  Result<Tensor> Constant(Value value) const;
  // How a graph output is left.
  ShardLayout LayoutOfOutput(Value value) const;
  RuleQuestion QuestionOf(const Node& node, const Operator& op) const;
  std::vector<ShardNote> Notes() const;

 private:
  // How a product, or an input of the graph, is to be split.
  struct Hint {
    int pieces = 0;
    std::vector<int64_t> blocks;
    std::string reason;
    bool operator==(const Hint&) const = default;
  };
  // A whole value of which ranks take their piece, or would if it were not updated in place.
  struct Cut {
    Value value;
    ShardLayout layout;
    NodeId updater = kNoNode;  // the node that updates it in place
  };
  using InputLayouts = std::map<NodeId, ShardLayout>;  // of Data
  enum class Way : uint8_t { kAsIs, kCut, kGather, kImpossible };

  void FindKnown();
  bool ComputedFromWeights(const Node& node, const Operator& op) const;
  void FindVocabulary();
  Status CheckNode(const Node& node, const Operator& op) const;
  std::vector<Value> UpdatedBy(const Node& node, const Operator& op) const;
  bool UpdatesWhatItHas(const Node& node, const Operator& op, const RuleAnswer& answer);
  Result<bool> KeepUpdatedWhole(const Node& node, const Operator& op);
  Way WayTo(Value value, const ShardLayout& wanted) const;
  bool MakesAnySize(Value value) const;
  bool MayComeToBePieces(const Node& node) const;
  // Walks once. True: a wish came up and the walk has to begin again.
  Result<bool> Walk();
  Result<bool> DecideNode(const Node& node, const Operator& op);
  bool TakeInputs(const Node& node, const std::vector<ShardLayout>& wanted);
  void Leave(const Node& node, const Operator& op, RuleAnswer answer);
  bool Grant(const Node& node, const Wish& wish);
  bool KeepWhole(Value value, const std::string& reason);
  Status WalkToEnd();
  Status SplitInputs();
  Result<bool> TryInputs(const InputLayouts& wanted);
  Result<bool> TrySplit(NodeId input, const Cut& cut);
  std::vector<ShardLayout> LayoutsFor(NodeId input, const Cut& cut) const;
  InputLayouts UpdatedBeside(NodeId input, const ShardLayout& layout, const Cut& cut) const;
  std::set<NodeId> InputsBehind(Value value) const;
  Status NothingSplit() const;
  bool OnlyCounts(NodeId id) const;

  const GraphAnalysis& analysis_;
  int ranks_;
  bool open_ = false;
  int64_t vocabulary_ = 0;
  std::vector<bool> known_;  // by node
  std::vector<NodeId> order_;
  std::map<NodeId, Hint> hints_;  // of products
  InputLayouts input_layouts_;
  std::set<NodeId> tried_;  // inputs of the graph
  // Which inputs are given in pieces is not decided yet. Until then ranks may take pieces of a
  // RefData, and what cannot be gathered for an output, or for an update in place, does not keep
  // products whole: all of it may come to be pieces.
  bool undecided_ = true;

  // Of the last walk.
  std::map<NodeId, RuleAnswer> answers_;
  std::map<Value, ShardLayout> layouts_;  // those that are split
  std::map<Value, std::set<NodeId>> origins_;
  std::set<Value> of_inputs_;  // pieces that come from pieces of inputs
  std::map<NodeId, std::string> whys_;
  std::vector<std::pair<NodeId, Value>> gathers_;  // reader, value
  std::vector<Cut> cuts_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_LAYOUT_PLAN_H_
