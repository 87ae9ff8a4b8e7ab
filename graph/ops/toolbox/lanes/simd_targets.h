// The instruction sets that kernels are compiled for: the baseline, AVX2 and AVX-512 on x86, NEON
// on Arm. The ones left out gain little over these, and each costs build time; a file for which
// SSE4 is worth it defines NPUMESH_SIMD_SSE4. Include before any header of Highway.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_LANES_SIMD_TARGETS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_LANES_SIMD_TARGETS_H_

#if defined(NPUMESH_SIMD_SSE4)
#define NPUMESH_SIMD_WITHOUT_SSE4 0
#else
#define NPUMESH_SIMD_WITHOUT_SSE4 HWY_SSE4
#endif
#define HWY_DISABLED_TARGETS                                                                \
  (HWY_SSSE3 | NPUMESH_SIMD_WITHOUT_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128)

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_LANES_SIMD_TARGETS_H_
