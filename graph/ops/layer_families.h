// The families of whole layers: normalisation by channel, convolution, pooling, resizing, random
// numbers. Called by BuiltinOps.
#ifndef NPUMESH_GRAPH_OPS_LAYER_FAMILIES_H_
#define NPUMESH_GRAPH_OPS_LAYER_FAMILIES_H_

#include "graph/ops/op_registry.h"

namespace npumesh {

void RegisterChannelOps(OpRegistry& registry);      // BNInfer, BiasAdd ...
void RegisterSoftmaxRowOps(OpRegistry& registry);   // LogSoftmaxV2, SoftmaxGrad, L2Normalize ...
void RegisterHalvesOps(OpRegistry& registry);       // GLU, GeGluV2, GLUGrad, SwiGluGrad
void RegisterPoolOps(OpRegistry& registry);         // MaxPool*, AvgPool*, AdaptiveAvgPool2d ...
void RegisterResizeOps(OpRegistry& registry);       // ResizeNearestNeighborV2, ResizeBilinearV2
void RegisterConvolutionOps(OpRegistry& registry);  // Conv2D, DepthwiseConv2D, Conv3D
void RegisterRandomOps(OpRegistry& registry);       // StatelessRandomUniformV2, DropOutDoMask ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_LAYER_FAMILIES_H_
