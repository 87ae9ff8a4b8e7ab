#include "graph/ops/image/blocked_image.h"

#include <algorithm>

#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/product/panel_kernels.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// An image as blocks of channels.
struct BlockedImage {
  int64_t batch = 0, channels = 0, pixels = 0, block = 1;

  explicit BlockedImage(const Shape& image)
      : batch(image[0]), channels(image[1]), pixels(image[2] * image[3]), block(ImageBlock()) {}

  int64_t blocks() const { return CeilDiv(channels, block); }
  int64_t channels_of(int64_t at) const { return std::min(block, channels - at * block); }
};

// Block `at` of all images of the batch.
void FillBlock(const BlockedImage& image, const float* x, int64_t at, float* y) {
  const int64_t batch = at / image.blocks(), of_image = at % image.blocks();
  const int64_t channels = image.channels_of(of_image), pixels = image.pixels;
  x += (batch * image.channels + of_image * image.block) * pixels;
  y += at * pixels * image.block;
  ProcessorPanelKernels().transpose(x, pixels, channels, pixels, y, image.block);
  for (int64_t p = 0; channels < image.block && p < pixels; ++p) {
    std::fill(y + p * image.block + channels, y + (p + 1) * image.block, 0.0F);
  }
}

void EmptyBlock(const BlockedImage& image, const float* x, int64_t at, float* y) {
  const int64_t batch = at / image.blocks(), of_image = at % image.blocks();
  const int64_t pixels = image.pixels;
  x += at * pixels * image.block;
  y += (batch * image.channels + of_image * image.block) * pixels;
  const int64_t channels = image.channels_of(of_image);
  ProcessorPanelKernels().transpose(x, image.block, pixels, channels, y, pixels);
}

}  // namespace

int64_t ImageBlock() {
  if (ComputesBy(dnnl::cpu_isa::avx512_core)) return 16;
  return ComputesBy(dnnl::cpu_isa::avx2) ? 8 : 0;
}

Shape InBlocks(const Shape& image) {
  const int64_t block = ImageBlock();
  return Shape({image[0], CeilDiv(image[1], block), image[2], image[3], block});
}

std::unique_ptr<Kernel> MakeImageReorder(const Shape& shape, bool into_blocks, int threads) {
  const BlockedImage image(shape);
  const int parts = WorthThreads(kElementWork * static_cast<double>(shape.elements()), threads);
  return MakeKernel([image, into_blocks, parts](const KernelArgs& args) {
    const auto* x = static_cast<const float*>(args.in[0]);
    auto* y = static_cast<float*>(args.out[0]);
    RunRanges(parts, image.batch * image.blocks(), 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        (into_blocks ? FillBlock : EmptyBlock)(image, x, at, y);
      }
    });
    return Status();
  });
}

Tensor ReorderedImage(const Tensor& image) {
  Tensor blocks = Tensor::Allocate({image.dtype(), InBlocks(image.shape())});
  const BlockedImage of(image.shape());
  for (int64_t at = 0; at < of.batch * of.blocks(); ++at) {
    FillBlock(of, reinterpret_cast<const float*>(image.data()), at,
              reinterpret_cast<float*>(blocks.mutable_data()));
  }
  return blocks;
}

}  // namespace npumesh
