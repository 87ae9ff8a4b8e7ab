// y = x * factor + summand with one pair for each channel of an image: what a batch norm is once
// its statistics are known. Computed in double and rounded once.
//
// Thread-safety: kernels are immutable and run on the threads that they were made for.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_CHANNEL_SCALE_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_CHANNEL_SCALE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh {

struct ChannelFactors {
  std::vector<double> factor, summand;  // by channel
};

// Of float32 images [batch, channels, pixels], or, where `block` is more than 1, in blocks of so
// many channels, [batch, ceil(channels / block), pixels, block]. Input 0 is x.
std::unique_ptr<Kernel> MakeChannelScale(const ChannelFactors& factors, int64_t batch,
                                         int64_t pixels, int64_t block, int threads);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_CHANNEL_SCALE_H_
