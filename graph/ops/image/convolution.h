// Convolution, its transpose and the gradient of its filter, by oneDNN.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_CONVOLUTION_H_
#define NPUMESH_GRAPH_OPS_IMAGE_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/ops/core/define.h"

namespace npumesh {

// A tensor of a convolution: logical dimensions in the order that oneDNN wants (batch, channels,
// image; of the filter groups, output channels, input channels, image) and the distance of
// neighbours along each, in elements.
struct ConvolutionTensor {
  std::optional<int> slot;  // none: the output
  DataType dtype = DataType::kUndefined;
  std::vector<int64_t> dims, strides;
  int64_t elements = 0;
};

struct Convolution : Planned {
  int threads = 1;
  KernelTuning* tuning = nullptr;  // may be null
  bool transposed = false;         // spreads every position of x, instead of gathering
  bool of_filter = false;          // x and y are inputs, the output is the gradient of the filter
  ConvolutionTensor x, filter, y;
  std::optional<ConvolutionTensor> bias;
  // One number for each dimension of the image.
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;  // 1: none
  std::vector<int64_t> before;     // padding
  std::vector<int64_t> behind;
};

// Computed in float32; 16-bit floats are widened and rounded once. A gradient of a filter has no
// bias and is not transposed. Errors: what oneDNN refuses.
Result<std::unique_ptr<Kernel>> MakeConvolution(Convolution plan);

// QuantConv2D: where its tensors lie, without the bias. The type of the output is that of x.
Result<Convolution> PlanQuantConvolution(const OpContext& op);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_CONVOLUTION_H_
