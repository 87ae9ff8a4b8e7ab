// The image family: convolutions, pools, sampling.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_FAMILY_H_
#define NPUMESH_GRAPH_OPS_IMAGE_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterImageFamily(OpRegistry& registry);

void RegisterConvolutionOps(OpRegistry& registry);        // Conv2D, DepthwiseConv2D, Conv3D
void RegisterQuantConvolutionOps(OpRegistry& registry);   // QuantConv2D
void RegisterLinearConvolutionOps(OpRegistry& registry);  // QLinearConv
void RegisterPoolOps(OpRegistry& registry);               // MaxPool*, AvgPool*, their gradients ...
void RegisterResizeOps(OpRegistry& registry);      // ResizeNearestNeighborV2, ResizeBilinearV2
void RegisterGridSampleOps(OpRegistry& registry);  // GridSampler2D, GridSampler2DGrad ...
void RegisterCausalConvOps(OpRegistry& registry);  // FusedCausalConv1d ...
void RegisterPatchOps(OpRegistry& registry);       // Im2col, Col2im, UnfoldGrad
void RegisterResampleOps(OpRegistry& registry);    // UpsampleBicubic2d ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_FAMILY_H_
