// Windows that slide over images: what convolutions and pools have in common.
#ifndef NPUMESH_GRAPH_ONNX_WINDOW_H_
#define NPUMESH_GRAPH_ONNX_WINDOW_H_

#include <vector>

#include "graph/onnx/lowering.h"

namespace npumesh {

// One entry for each dimension of the image, after batch and channels.
struct SlidingWindow {
  std::vector<int64_t> kernel, strides, dilations, before, behind;
  bool same = false;   // auto_pad SAME_*: the pads follow from the image
  bool lower = false;  // SAME_LOWER: the odd one comes before

  int dims() const { return static_cast<int>(kernel.size()); }
  size_t size() const { return kernel.size(); }
  // What one window covers.
  int64_t extent(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

// From the attributes of a node whose windows slide over the image of x [N, C, image...]; `kernel`
// is that of the filter where there is no kernel_shape. Error: x has an image of other dimensions.
SlidingWindow WindowFrom(Lowering& at, Value x, std::vector<int64_t> kernel);
// Fills in the pads of auto_pad SAME_*, for which the sizes of the image x [N, C, image...] have to
// be known: as many as the outputs are the image divided by the stride, rounded up.
void PadForSame(Lowering& at, Value x, SlidingWindow& window);

// [1, 1, ...numbers].
std::vector<int64_t> WithOnes(const std::vector<int64_t>& numbers);
// Pads in the order of ours: before and after each dimension of the image.
std::vector<int64_t> PadPairs(const SlidingWindow& window);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_WINDOW_H_
