// The tensors that AttentionFusionPass hands to the attention kernel: read where they lie, across
// the Reshape, Transpose, BroadcastTo and constant factor that stand in front of a product.
// Internal to graph/passes.
#ifndef NPUMESH_GRAPH_PASSES_FUSION_ATTENTION_OPERAND_H_
#define NPUMESH_GRAPH_PASSES_FUSION_ATTENTION_OPERAND_H_

#include <functional>
#include <optional>
#include <vector>

#include "graph/passes/fusion/fusion_view.h"
#include "graph/passes/fusion/strided_view.h"

namespace npumesh {

// A tensor [batch, rows, columns] in a value that is computed.
struct AttentionOperand {
  Value value;
  DataType dtype = DataType::kUndefined;
  StridedView::Factors batch;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;
  float factor = 1;           // of its elements
  std::vector<NodeId> nodes;  // which need not be computed
};

// A number by which a node multiplies all elements of one of its inputs.
struct ConstantFactor {
  float factor = 1;
  int slot = 0;  // of the input
};

// That of a Muls, a Mul with or a RealDiv or Div by a finite constant that is not 0 and of one
// element; nullopt: the node is another operator, or changes type or shape of its input.
std::optional<ConstantFactor> FactorOf(const FusionView& view, NodeId node);

// How the dimensions in front of the matrices are counted: by sequence, by the head of K and V, and
// by the query heads that share it.
struct HeadCount {
  int64_t batches = 1;
  int64_t kv_heads = 1;
  int64_t shared = 1;

  int64_t heads() const { return kv_heads * shared; }
};
// Distances between sequences and between the heads that a tensor has.
struct HeadStrides {
  int64_t batch = 0;
  int64_t head = 0;
};
// Decides the counts so that every tensor has one distance for each, and fills in the distances.
// The heads of `by_query` are those of the queries, those of `by_key` those of K and V. nullopt:
// there are no such counts. REQUIRES: equal numbers of batches.
std::optional<HeadCount> CountHeads(const std::vector<const AttentionOperand*>& by_query,
                                    const std::vector<const AttentionOperand*>& by_key,
                                    std::vector<HeadStrides>& query_strides,
                                    std::vector<HeadStrides>& key_strides);

class OperandFinder {
 public:
  explicit OperandFinder(const FusionView& view) : view_(view) {}

  // The operand of a product of `shape` (of which only the batches count) in its slot; `transposed`
  // when the last two dimensions of what is fed are meant to change places, `scales` when it may
  // have a factor. nullopt: rows of one do not lie in memory one element after the other.
  std::optional<AttentionOperand> OfProduct(NodeId product, int slot, bool transposed, bool scales,
                                            const Shape& shape) const;

  // A mask that `node` reads in `slot`, broadcast to `all`, which has the elements of scores
  // [batch, rows, columns]. nullopt as above.
  std::optional<AttentionOperand> OfScores(NodeId node, int slot, const Shape& all, int64_t rows,
                                           int64_t columns) const;

 private:
  // Brings a view of what is fed to the slot into the form [batches.., rows, columns].
  using Arrange = std::function<bool(StridedView&)>;

  // The nodes between a computed value and the slot, the last one first, that nothing else reads.
  std::vector<NodeId> Chain(NodeId reader, int slot, bool scales) const;
  bool MayBeLeftOut(NodeId node, bool scales) const;
  // What `node` makes of a view of its input. False: no view.
  bool Apply(NodeId node, AttentionOperand& operand, StridedView& view) const;
  std::optional<AttentionOperand> Find(NodeId reader, int slot, bool scales,
                                       const Arrange& arrange) const;
  std::optional<AttentionOperand> FindBehind(NodeId reader, int slot,
                                             const std::vector<NodeId>& chain, size_t left_out,
                                             const Arrange& arrange) const;

  const FusionView& view_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_FUSION_ATTENTION_OPERAND_H_
