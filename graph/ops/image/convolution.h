// Convolution, its transpose and the gradient of its filter, by oneDNN.
//
// oneDNN is fast where images lie in blocks of channels (blocked_image.h) and filters as it likes
// them. A constant filter is brought there once, when the kernel is made; an image where it is not
// so yet, in every run, and only where that costs less than it gains.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_CONVOLUTION_H_
#define NPUMESH_GRAPH_OPS_IMAGE_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/rows/channel_scale.h"

namespace npumesh {

class PackedWeights;

// A tensor of a convolution: logical dimensions in the order that oneDNN wants (batch, channels,
// image; of the filter groups, output channels, input channels, image) and the distance of
// neighbours along each, in elements.
struct ConvolutionTensor {
  std::optional<int> slot;  // none: the output
  DataType dtype = DataType::kUndefined;
  std::vector<int64_t> dims, strides;
  int64_t elements = 0;
  bool in_blocks = false;  // an image of float32 in blocks of channels, without strides
};

struct Convolution : Planned {
  int threads = 1;
  KernelTuning* tuning = nullptr;  // may be null
  // The filter and the bias where they are constants, and where packed filters are kept.
  const Tensor* filter_value = nullptr;
  const Tensor* bias_value = nullptr;
  PackedWeights* packed = nullptr;  // may be null
  // What y is multiplied by and what is added, by output channel: goes into filter and bias before
  // anything runs. REQUIRES: both are constants, as far as they are there.
  std::optional<ChannelFactors> scale;
  bool transposed = false;  // spreads every position of x, instead of gathering
  bool of_filter = false;   // x and y are inputs, the output is the gradient of the filter
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

// The convolution that a node of Conv2D or DepthwiseConv2D is. Errors as those of its shape
// inference.
Result<Convolution> PlanImageConvolution(const OpContext& op);

// Multiplications and additions of a convolution or its transpose, with those by padding; 0 for
// nodes of other types.
double ConvolutionFlops(const OpContext& op);

// Whether the convolution gains by images in blocks of channels: says of x whether it comes in
// blocks, and takes it so where it does already. REQUIRES: y.in_blocks; both are images of float32.
bool ChooseBlocks(Convolution& plan);

// QuantConv2D: where its tensors lie, without the bias. The type of the output is that of x.
Result<Convolution> PlanQuantConvolution(const OpContext& op);
// QLinearConv: the same, of bytes of two types, whose filter is [outputs, inputs, image].
Result<Convolution> PlanLinearConvolution(const OpContext& op);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_CONVOLUTION_H_
