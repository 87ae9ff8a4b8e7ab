// The steps of conversions between float and 16-bit floats, on vectors of 32-bit words. Integer
// operations only, so that every target gives the bits of runtime/base/float16.h, NaNs included.
//
// A word of 16 bits lies in the low half of its lane, with zeros above it.
//
// Included once for each Highway target; REQUIRES: hwy/highway.h is included first.
#if defined(NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_HALF_STEPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_HALF_STEPS_INL_H_
#undef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_HALF_STEPS_INL_H_
#else
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_HALF_STEPS_INL_H_
#endif

#include <cstdint>

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

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
