// Images in blocks of channels: NC1HWC0, the layout in which devices keep images and in which
// convolutions are fast. C0 channels of a pixel lie one after the other, so that one instruction
// works on all of them; the last block is filled up with channels that are never read.
//
// Ascend's C0 is 8 for float32. Here it is what a vector register of this processor holds.
//
// Thread-safety: functions may be called by several threads.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_BLOCKED_IMAGE_H_
#define NPUMESH_GRAPH_OPS_IMAGE_BLOCKED_IMAGE_H_

#include <cstdint>
#include <memory>

#include "graph/ir/tensor.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// Channels of a block: 16 with AVX-512, 8 with AVX2; 0: this processor does not gain by blocks.
int64_t ImageBlock();

// [N, C, H, W] as [N, ceil(C / C0), H, W, C0]. REQUIRES: four known dimensions, ImageBlock() > 0.
Shape InBlocks(const Shape& image);

// Brings an image of float32 from NCHW into blocks, or back, on so many threads. Channels that fill
// up the last block become 0. REQUIRES: four known dimensions, ImageBlock() > 0.
std::unique_ptr<Kernel> MakeImageReorder(const Shape& image, bool into_blocks, int threads);
// The image in blocks.
Tensor ReorderedImage(const Tensor& image);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_BLOCKED_IMAGE_H_
