// float16 and bfloat16 to float and back.
#include "graph/ops/toolbox/values/cast.h"

#include <cstdint>
#include <cstring>

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/values/cast_half.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "graph/ops/toolbox/values/half_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Steps>
void Widen(const void* from, void* to, size_t count) {
  const hn::ScalableTag<uint32_t> du;
  const hn::Rebind<uint16_t, decltype(du)> dh;
  const size_t lanes = hn::Lanes(du);
  const uint16_t* in = static_cast<const uint16_t*>(from);
  uint32_t* out = static_cast<uint32_t*>(to);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(Steps()(du, hn::PromoteTo(du, hn::LoadU(dh, in + i))), du, out + i);
  }
  if (i == count) return;
  HWY_ALIGN uint16_t rest[HWY_MAX_BYTES / 2] = {};
  HWY_ALIGN uint32_t wide[HWY_MAX_BYTES / 4];
  std::memcpy(rest, in + i, (count - i) * sizeof(uint16_t));
  hn::Store(Steps()(du, hn::PromoteTo(du, hn::Load(dh, rest))), du, wide);
  std::memcpy(out + i, wide, (count - i) * sizeof(uint32_t));
}

template <class Steps>
void Narrow(const void* from, void* to, size_t count) {
  const hn::ScalableTag<uint32_t> du;
  const hn::RebindToSigned<decltype(du)> di;
  const hn::Rebind<uint16_t, decltype(du)> dh;
  const size_t lanes = hn::Lanes(du);
  const uint32_t* in = static_cast<const uint32_t*>(from);
  uint16_t* out = static_cast<uint16_t*>(to);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto narrow = Steps()(du, hn::LoadU(du, in + i));
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(di, narrow)), dh, out + i);
  }
  if (i == count) return;
  HWY_ALIGN uint32_t rest[HWY_MAX_BYTES / 4] = {};
  HWY_ALIGN uint16_t narrow[HWY_MAX_BYTES / 2];
  std::memcpy(rest, in + i, (count - i) * sizeof(uint32_t));
  hn::Store(hn::DemoteTo(dh, hn::BitCast(di, Steps()(du, hn::Load(du, rest)))), dh, narrow);
  std::memcpy(out + i, narrow, (count - i) * sizeof(uint16_t));
}

void HalfToFloat(const void* from, void* to, size_t count) {
  Widen<WidenHalf>(from, to, count);
}
void BfloatToFloat(const void* from, void* to, size_t count) {
  Widen<WidenBfloat>(from, to, count);
}
void FloatToHalf(const void* from, void* to, size_t count) {
  Narrow<NarrowToHalf>(from, to, count);
}
void FloatToBfloat(const void* from, void* to, size_t count) {
  Narrow<NarrowToBfloat>(from, to, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(HalfToFloat);
HWY_EXPORT(BfloatToFloat);
HWY_EXPORT(FloatToHalf);
HWY_EXPORT(FloatToBfloat);

void HalfToFloat(const void* from, void* to, size_t count) {
  HWY_DYNAMIC_DISPATCH(HalfToFloat)(from, to, count);
}
void BfloatToFloat(const void* from, void* to, size_t count) {
  HWY_DYNAMIC_DISPATCH(BfloatToFloat)(from, to, count);
}
void FloatToHalf(const void* from, void* to, size_t count) {
  HWY_DYNAMIC_DISPATCH(FloatToHalf)(from, to, count);
}
void FloatToBfloat(const void* from, void* to, size_t count) {
  HWY_DYNAMIC_DISPATCH(FloatToBfloat)(from, to, count);
}

}  // namespace npumesh
#endif  // HWY_ONCE
