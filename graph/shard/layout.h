// ShardLayout: where the pieces of a tensor lie among the ranks.
//
// Thread-safety: plain values and free functions.
#ifndef NPUMESH_GRAPH_SHARD_LAYOUT_H_
#define NPUMESH_GRAPH_SHARD_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh {

enum class Spreading : uint8_t {
  kReplicated,  // each rank has all of it
  kSplit,       // each rank has a piece along `axis`
  kPartial,     // the tensor is the sum of what the ranks have
};

// Of kSplit: the axis falls into `pieces` equal pieces. Where there are fewer pieces than ranks,
// `ranks / pieces` neighbours have the same one. With `blocks`, sizes that add up to that of the
// axis, every block falls into pieces, and a rank has its piece of each (queries, keys and values
// that one product makes side by side). Where the axis does not fall into equal pieces, `padding`
// zeros at its end make it do so (a vocabulary of any size); such a tensor can only be transposed
// and gathered.
struct ShardLayout {
  Spreading spread = Spreading::kReplicated;
  int axis = 0;
  int pieces = 1;
  std::vector<int64_t> blocks = {};
  int64_t padding = 0;
  bool operator==(const ShardLayout&) const = default;

  bool split() const { return spread == Spreading::kSplit; }
  static ShardLayout Split(int axis, int pieces, std::vector<int64_t> blocks = {}) {
    return {Spreading::kSplit, axis, pieces, std::move(blocks)};
  }
  static ShardLayout Partial() { return {.spread = Spreading::kPartial}; }
};

// "whole", "axis 2", "axis 1, 2 pieces on 4 ranks", "axis 2 in blocks of 16, 16, 16", "partial
// sums".
std::string ToText(const ShardLayout& layout, int ranks);

// Which piece a rank has. REQUIRES: pieces divides ranks.
inline int PieceOf(int rank, int pieces, int ranks) {
  return rank / (ranks / pieces);
}

// `shape` of one piece. REQUIRES: the axis with its padding, or each block, falls into equal
// pieces.
Shape PieceShape(const Shape& shape, const ShardLayout& layout);

// What `rank` has of `whole`; of kPartial: all on rank 0, zeros on the others. REQUIRES: as
// PieceShape, and a dtype of whole bytes.
Tensor PieceOf(const Tensor& whole, const ShardLayout& layout, int rank, int ranks);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_LAYOUT_H_
