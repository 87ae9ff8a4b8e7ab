// float16 and bfloat16 to float and back. Integer operations only, so that every target gives the
// bits of runtime/base/float16.h, NaNs included.
#include "graph/ops/toolbox/values/cast.h"

#include <cstdint>
#include <cstring>

#include "graph/ops/toolbox/values/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/values/cast_half.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct WidenHalf {
  template <class DU, class V>
  HWY_INLINE V operator()(DU du, V half) const {
    const hn::RebindToFloat<DU> df;
    const V sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(du, 0x8000u)));
    const V magnitude = hn::And(half, hn::Set(du, 0x7fffu));
    const V shifted = hn::ShiftLeft<13>(magnitude);
    // 2^112 moves the bias from 15 to 127; exact for subnormals too.
    const V finite = hn::BitCast(du, hn::Mul(hn::BitCast(df, shifted), hn::Set(df, 0x1p112f)));
    const V special = hn::Or(shifted, hn::Set(du, 0x7f800000u));
    const auto is_special = hn::Gt(magnitude, hn::Set(du, 0x7bffu));
    return hn::Or(sign, hn::IfThenElse(is_special, special, finite));
  }
};

struct WidenBfloat {
  template <class DU, class V>
  HWY_INLINE V operator()(DU /*du*/, V bfloat) const {
    return hn::ShiftLeft<16>(bfloat);
  }
};

// The steps of Float16::FromFloat.
struct NarrowToHalf {
  template <class DU, class V>
  HWY_INLINE V operator()(DU du, V bits) const {
    const hn::RebindToFloat<DU> df;
    const V magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
    const V sign = hn::ShiftRight<16>(hn::And(bits, hn::Set(du, 0x80000000u)));
    const V odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1u));
    const V rounded = hn::Add(hn::Add(magnitude, odd), hn::Set(du, 0xfffu - (112u << 23)));
    const V aligned = hn::BitCast(du, hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f)));
    const V subnormal = hn::Sub(aligned, hn::Set(du, 0x3f000000u));
    V half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x38800000u)), subnormal,
                            hn::ShiftRight<13>(rounded));
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x477fefffu)), hn::Set(du, 0x7c00u), half);
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7f800000u)), hn::Set(du, 0x7e00u), half);
    return hn::Or(sign, half);
  }
};

// The steps of Bfloat16::FromFloat.
struct NarrowToBfloat {
  template <class DU, class V>
  HWY_INLINE V operator()(DU du, V bits) const {
    const V magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
    const V odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const V rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, odd), hn::Set(du, 0x7fffu)));
    const V nan = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40u));
    return hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7f800000u)), nan, rounded);
  }
};

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
