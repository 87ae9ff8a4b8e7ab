#include "graph/ops/toolbox/rows/channel_scale.h"

#include "graph/ops/toolbox/lanes/simd_targets.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/thread_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/rows/channel_scale.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After Highway.
#include "graph/ops/toolbox/lanes/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// As many floats as a vector has doubles.
using Wide = hn::ScalableTag<double>;
using Narrow = hn::Rebind<float, Wide>;

HWY_INLINE void ScaleVector(const float* x, hn::Vec<Wide> factor, hn::Vec<Wide> summand, float* y) {
  const auto wide = hn::PromoteTo(Wide(), hn::LoadU(Narrow(), x));
  hn::StoreU(Narrowed(Narrow(), hn::Add(hn::Mul(wide, factor), summand)), Narrow(), y);
}

// One channel.
void ScalePlane(const float* x, int64_t count, double factor, double summand, float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Wide()));
  const auto factors = hn::Set(Wide(), factor), summands = hn::Set(Wide(), summand);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) ScaleVector(x + i, factors, summands, y + i);
  for (; i < count; ++i) y[i] = static_cast<float>(double{x[i]} * factor + summand);
}

// A block of channels. REQUIRES: it is a multiple of the vector.
void ScaleBlock(const float* x, int64_t pixels, int64_t block, const double* factor,
                const double* summand, float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Wide()));
  for (int64_t c = 0; c < block; c += lanes) {
    const auto factors = hn::LoadU(Wide(), factor + c), summands = hn::LoadU(Wide(), summand + c);
    for (int64_t p = 0; p < pixels; ++p) {
      ScaleVector(x + p * block + c, factors, summands, y + p * block + c);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(ScalePlane);
HWY_EXPORT(ScaleBlock);

std::unique_ptr<Kernel> MakeChannelScale(const ChannelFactors& factors, int64_t batch,
                                         int64_t pixels, int64_t block, int threads) {
  const auto channels = static_cast<int64_t>(factors.factor.size());
  const int64_t blocks = CeilDiv(channels, block);
  ChannelFactors filled = factors;  // of whole blocks
  filled.factor.resize(static_cast<size_t>(blocks * block), 0);
  filled.summand.resize(static_cast<size_t>(blocks * block), 0);
  const double work = kElementWork * static_cast<double>(batch * blocks * block * pixels);
  const int parts = WorthThreads(work, threads);
  return MakeKernel([=, filled = std::move(filled)](const KernelArgs& args) {
    const auto* x = static_cast<const float*>(args.in[0]);
    auto* y = static_cast<float*>(args.out[0]);
    RunRanges(parts, batch * blocks, 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t first = at * pixels * block;
        const double* factor = filled.factor.data() + at % blocks * block;
        const double* summand = filled.summand.data() + at % blocks * block;
        if (block == 1) {
          HWY_DYNAMIC_DISPATCH(ScalePlane)(x + first, pixels, *factor, *summand, y + first);
        } else {
          HWY_DYNAMIC_DISPATCH(ScaleBlock)(x + first, pixels, block, factor, summand, y + first);
        }
      }
    });
    return Status();
  });
}

}  // namespace npumesh
#endif  // HWY_ONCE
