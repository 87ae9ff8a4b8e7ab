// BNInfer whose statistics are known before it runs.
#ifndef NPUMESH_GRAPH_OPS_ELEMENTWISE_BATCH_NORM_H_
#define NPUMESH_GRAPH_OPS_ELEMENTWISE_BATCH_NORM_H_

#include <optional>

#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/rows/channel_scale.h"

namespace npumesh {

// What a node of BNInfer multiplies each channel by and adds, (x - mean) / sqrt(variance + epsilon)
// * scale + offset. nullopt: its statistics are only known at run time, or x is no float32 image
// with its channels second.
std::optional<ChannelFactors> BatchNormFactors(const OpContext& op);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ELEMENTWISE_BATCH_NORM_H_
