// Products of pairs of bfloat16 by the instruction that AVX-512 has for them (vdpbf16ps). Its sum
// is fma(low, low, fma(high, high, sum)), each step rounded to the nearest; numbers below 2^-126
// count as zeros. So with the first place of k in the high half its bits are those of a chain in
// the order of k (panel_kernels.h).
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PAIR_KERNELS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PAIR_KERNELS_H_

#include "graph/ops/toolbox/product/panel_kernels.h"

namespace npumesh {

// PanelKernels::pairs beside these other kernels of the processor. Thread-safe.
PanelKernels::OfType PairKernels(const PanelKernels& kernels);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PAIR_KERNELS_H_
