// What normalisation by channel and its gradients share.
#ifndef NPUMESH_GRAPH_OPS_BATCH_NORM_H_
#define NPUMESH_GRAPH_OPS_BATCH_NORM_H_

#include <string_view>

#include "graph/ops/check.h"
#include "graph/ops/norm_view.h"

namespace npumesh {

struct ChannelPlan : NormPlan {
  double momentum = 0;
  bool training = true;  // statistics are those of the batch
};

// The input in slot `x_slot` by channels. Inputs before it have its shape, those behind it an entry
// for each channel. Matrices have channels last, other tensors where layout or `fallback` says.
NormView ViewByChannel(const OpContext& op, int x_slot, std::string_view fallback, Check& check);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_BATCH_NORM_H_
