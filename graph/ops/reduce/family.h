// The reduce family: many values to few: sums, norms, softmax, losses.
#ifndef NPUMESH_GRAPH_OPS_REDUCE_FAMILY_H_
#define NPUMESH_GRAPH_OPS_REDUCE_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterReduceFamily(OpRegistry& registry);

// Each lives in a file of its name.
void RegisterReduceOps(OpRegistry& registry);         // ReduceSum, ReduceMean, ReduceMax
void RegisterStatisticOps(OpRegistry& registry);      // ReduceStdV2, ReduceLogSumExp, LpNormV2 ...
void RegisterNormOps(OpRegistry& registry);           // LayerNormV4, RmsNorm, AddRmsNorm
void RegisterSoftmaxOps(OpRegistry& registry);        // SoftmaxV2
void RegisterSoftmaxRowOps(OpRegistry& registry);     // LogSoftmaxV2, SoftmaxGrad, L2Normalize ...
void RegisterLayerNormOps(OpRegistry& registry);      // LayerNormV3, LayerNormGradV3 ...
void RegisterGroupNormOps(OpRegistry& registry);      // GroupNorm, GroupNormV2, GroupNormGrad ...
void RegisterBatchNormOps(OpRegistry& registry);      // BatchNormV3, BNTrainingUpdate ...
void RegisterLossOps(OpRegistry& registry);           // NLLLoss, PReluGrad ...
void RegisterCrossEntropyOps(OpRegistry& registry);   // CrossEntropyLoss and its gradient
void RegisterMaskedSoftmaxOps(OpRegistry& registry);  // ScaledMaskedSoftmax ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_REDUCE_FAMILY_H_
