// The families of normalisation and of training. Called by BuiltinOps.
#ifndef NPUMESH_GRAPH_OPS_NORM_FAMILIES_H_
#define NPUMESH_GRAPH_OPS_NORM_FAMILIES_H_

#include "graph/ops/op_registry.h"

namespace npumesh {

void RegisterLayerNormOps(OpRegistry& registry);  // LayerNormV3, LayerNormGradV3, RmsNormGrad ...
void RegisterGroupNormOps(OpRegistry& registry);  // GroupNorm, GroupNormV2, GroupNormGrad ...
void RegisterBatchNormOps(OpRegistry& registry);  // BatchNormV3, BNTrainingUpdate ...
void RegisterBatchNormGradients(OpRegistry& registry);  // of RegisterBatchNormOps

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_NORM_FAMILIES_H_
