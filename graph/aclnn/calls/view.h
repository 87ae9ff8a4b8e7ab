// AclnnView: where the elements of a tensor of aclnn lie.
//
// Thread-safety: values; the functions may be called from any thread.
#ifndef NPUMESH_GRAPH_ACLNN_CALLS_VIEW_H_
#define NPUMESH_GRAPH_ACLNN_CALLS_VIEW_H_

#include <cstdint>
#include <vector>

#include "graph/ops/toolbox/copy/blocked_layout.h"

namespace npumesh {

// Of elements that lie side by side, in C order.
std::vector<int64_t> PackedStrides(const std::vector<int64_t>& dims);

// From the address of its tensor on; strides and offset in elements.
//
// In a private format the memory holds the blocks of a plain tensor, whose dimensions are those of
// the view by falling stride: a matrix that is stored and then transposed has strides (1, rows).
struct AclnnView {
  TensorType type;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  LayoutSpec layout;   // of the memory
  LayoutSpec becomes;  // after the call, which writes it

  // The view of what a call has written.
  AclnnView Written() const;
  // Whether the elements lie side by side in C order, from the offset on.
  bool packed() const;
  // Bytes from the address to the end of what the view may touch.
  uint64_t extent() const;
  // Bytes that Gather and Scatter need beside: the plain tensor behind blocks in another order.
  uint64_t scratch_bytes() const;
  // Error (kInvalidArgument): a private format whose plain tensor has gaps, begins at an offset or
  // has a rank that does not fit.
  Status Check() const;
};

// The plain tensor of a view and its blocks. REQUIRES: a private format. Errors as Check.
Result<BlockedTensor> BlocksOf(const AclnnView& view);

// Copies the elements to `packed`, side by side, or back. REQUIRES: Check is ok.
void Gather(const AclnnView& view, const void* tensor, void* packed, void* scratch);
void Scatter(const AclnnView& view, const void* packed, void* tensor, void* scratch);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACLNN_CALLS_VIEW_H_
