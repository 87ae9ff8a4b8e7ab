// 16-bit floats as vectors of float.
//
// Included once for each Highway target; REQUIRES: hwy/highway.h is included first.
#if defined(NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_HALF_IO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_HALF_IO_INL_H_
#undef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_HALF_IO_INL_H_
#else
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_HALF_IO_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector of elements of `Half`, hwy::float16_t or hwy::bfloat16_t, from any address.
template <class Half, class D>
HWY_INLINE hn::Vec<D> WideHalves(D d, const uint16_t* from) {
  const hn::Rebind<Half, D> dh;
  const auto wide = hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const Half*>(from)));
  // Without F16C Highway takes infinity and NaN of float16 for numbers from 65536 on, which no
  // float16 is: what lacks is the exponent.
  constexpr bool kHasF16c = HWY_TARGET <= HWY_AVX2;
  if constexpr (kHasF16c || !std::is_same_v<Half, hwy::float16_t>) return wide;
  const auto special = hn::Ge(hn::Abs(wide), hn::Set(d, 65536.0f));
  return hn::IfThenElse(special, hn::Or(wide, hn::Inf(d)), wide);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
