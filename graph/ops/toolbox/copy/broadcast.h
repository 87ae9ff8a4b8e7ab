// Broadcasting: data type and shape of a result, and reading an operand in the result's order.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_COPY_BROADCAST_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_COPY_BROADCAST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/ir/shape.h"

namespace npumesh {

// Result type of an operation on operands of different data types, by PyTorch's
// rules: floating above integer above bool; among equals the one that holds both; a scalar
// (rank 0) only counts when it is of a higher category than all tensors. kUndefined when a type is
// not a float (16, 32, 64 bits, bfloat16), integer or bool, unless all are the same; and for none.
DataType Promote(std::span<const TensorType> operands);

// How an operand of one shape is read in the order of a larger one.
//
// Neighbouring dimensions that are walked alike are merged, so that reading proceeds in runs along
// the innermost one; there is no division inside a block.
//
// Thread-safety: immutable.
class BroadcastPlan {
 public:
  static constexpr int kMaxRank = 64;

  // REQUIRES: `from` broadcasts to `to`, both static, rank at most kMaxRank; element_bytes is 1, 2,
  // 4, 8 or 16.
  BroadcastPlan(const Shape& from, const Shape& to, size_t element_bytes);

  // Both shapes have the same elements in the same order.
  bool direct() const { return direct_; }
  // One element serves all.
  bool scalar() const { return scalar_; }

  // Writes elements [begin, begin + count) of `to` from the operand at `from`.
  void Gather(const void* from, int64_t begin, size_t count, void* to) const;

 private:
  struct Dim {
    int64_t size;
    int64_t stride;  // in elements; 0: repeated
  };
  template <typename Element>
  void GatherAs(const Element* from, int64_t begin, size_t count, Element* to) const;

  std::vector<Dim> dims_;  // outermost first, at least one
  size_t element_bytes_;
  bool direct_ = false, scalar_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_COPY_BROADCAST_H_
