// The instruction sets that the reduction kernels are compiled for. Include before any header of
// Highway.
//
// On x86: the baseline, SSE4, AVX2 and AVX-512; on Arm: NEON. The ones left out gain nothing for
// loops that memory bounds, and each costs build time.
#ifndef NPUMESH_COLLECTIVES_REDUCE_TARGETS_H_
#define NPUMESH_COLLECTIVES_REDUCE_TARGETS_H_

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#endif  // NPUMESH_COLLECTIVES_REDUCE_TARGETS_H_
