// The image family: convolutions, pools, sampling.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_FAMILY_H_
#define NPUMESH_GRAPH_OPS_IMAGE_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterImageFamily(OpRegistry& registry);

// Each lives in a file of its name.
void RegisterConvolutionOps(OpRegistry& registry);  // Conv2D, DepthwiseConv2D, Conv3D
void RegisterPoolOps(OpRegistry& registry);         // MaxPool*, AvgPool*, AdaptiveAvgPool2d ...
void RegisterPoolGradients(OpRegistry& registry);   // AvgPoolV2Grad ...
void RegisterVolumePoolOps(OpRegistry& registry);   // MaxPool3DWithArgmaxV2
void RegisterResizeOps(OpRegistry& registry);       // ResizeNearestNeighborV2, ResizeBilinearV2
void RegisterGridSampleOps(OpRegistry& registry);   // GridSampler2D, GridSampler2DGrad ...
void RegisterCausalConvOps(OpRegistry& registry);   // FusedCausalConv1d ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_FAMILY_H_
