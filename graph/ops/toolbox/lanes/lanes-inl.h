// The lanes for the instruction set that Highway compiles for now.
//
// Included once for each Highway target; REQUIRES: hwy/highway.h is included first.
#if defined(NPUMESH_GRAPH_OPS_TOOLBOX_LANES_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPUMESH_GRAPH_OPS_TOOLBOX_LANES_LANES_INL_H_
#undef NPUMESH_GRAPH_OPS_TOOLBOX_LANES_LANES_INL_H_
#else
#define NPUMESH_GRAPH_OPS_TOOLBOX_LANES_LANES_INL_H_
#endif

#include "hwy/highway.h"

// Clang has no macros for what the attribute of a target allows.
#undef NM_BYTES
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define NM_BYTES 64
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define NM_BYTES 32
#else
#define NM_BYTES 16
#endif
#define NM_WIDTH 16

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
#include "graph/ops/toolbox/lanes/all.lanes.h"
}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
