// Doubles rounded to floats, infinities too: Highway's one-lane target makes the largest float of
// them.
//
// Included once for each Highway target; REQUIRES: hwy/highway.h is included first.
#if defined(NPUMESH_GRAPH_OPS_TOOLBOX_LANES_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPUMESH_GRAPH_OPS_TOOLBOX_LANES_NARROW_INL_H_
#undef NPUMESH_GRAPH_OPS_TOOLBOX_LANES_NARROW_INL_H_
#else
#define NPUMESH_GRAPH_OPS_TOOLBOX_LANES_NARROW_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {

// `Floats` has as many lanes as `wide`.
template <class Floats, class Doubles>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<Floats> Narrowed(Floats tag, Doubles wide) {
#if HWY_TARGET == HWY_SCALAR
  return hwy::HWY_NAMESPACE::Set(tag, static_cast<float>(hwy::HWY_NAMESPACE::GetLane(wide)));
#else
  return hwy::HWY_NAMESPACE::DemoteTo(tag, wide);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
