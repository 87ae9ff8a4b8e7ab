#include "graph/ops/quant/byte_elements.h"

#include <limits>

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/quant/byte_elements.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Neighbouring elements; `Whole` says how many.
template <class Whole, typename Byte>
HWY_INLINE void Combine(const ByteCombination& by, const Byte* x1, const Byte* x2, Byte* y) {
  const Whole whole;
  const hn::Rebind<float, Whole> real;
  const hn::Rebind<Byte, Whole> narrow;
  const auto value = [&](const ByteScale& of, const Byte* x) HWY_ATTR {
    const auto centred =
        hn::Sub(hn::PromoteTo(whole, hn::LoadU(narrow, x)), hn::Set(whole, of.zero));
    return hn::Mul(hn::ConvertTo(real, centred), hn::Set(real, of.scale));
  };
  const auto left = value(by.x1, x1), right = value(by.x2, x2);
  const auto both = by.product ? hn::Mul(left, right) : hn::Add(left, right);
  // Within the type before the conversion, which knows no larger number.
  constexpr int32_t kLeast = std::numeric_limits<Byte>::min(), kMost = kLeast + 255;
  const auto least = hn::Set(real, static_cast<float>(kLeast - by.y.zero));
  const auto most = hn::Set(real, static_cast<float>(kMost - by.y.zero));
  const auto scaled = hn::Div(both, hn::Set(real, by.y.scale));
  const auto rounded = hn::NearestInt(hn::Min(hn::Max(scaled, least), most));
  hn::StoreU(hn::DemoteTo(narrow, hn::Add(rounded, hn::Set(whole, by.y.zero))), narrow, y);
}

template <typename Byte>
void CombineAll(const ByteCombination& by, const void* x1, const void* x2, int64_t count,
                void* to) {
  using Many = hn::ScalableTag<int32_t>;
  using One = hn::CappedTag<int32_t, 1>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Many()));
  const auto *a = static_cast<const Byte*>(x1), *b = static_cast<const Byte*>(x2);
  auto* const y = static_cast<Byte*>(to);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) Combine<Many>(by, a + i, b + i, y + i);
  for (; i < count; ++i) Combine<One>(by, a + i, b + i, y + i);
}

void CombineOf(const ByteCombination& by, const void* x1, const void* x2, int64_t count, void* y) {
  if (by.y.dtype == DataType::kInt8) return CombineAll<int8_t>(by, x1, x2, count, y);
  CombineAll<uint8_t>(by, x1, x2, count, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(CombineOf);

void CombineBytes(const ByteCombination& by, const void* x1, const void* x2, int64_t count,
                  void* y) {
  HWY_DYNAMIC_DISPATCH(CombineOf)(by, x1, x2, count, y);
}

}  // namespace npumesh
#endif  // HWY_ONCE
