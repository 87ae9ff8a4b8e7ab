// The shape family: values stay, shapes change; and the ends of a graph.
#ifndef NPUMESH_GRAPH_OPS_SHAPE_FAMILY_H_
#define NPUMESH_GRAPH_OPS_SHAPE_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterShapeFamily(OpRegistry& registry);

// Each lives in a file of its name.
void RegisterStructureOps(OpRegistry& registry);    // Identity, TensorMove, Assign, Bitcast; Data,
                                                    // Const, NetOutput and other furniture
void RegisterShapeQueryOps(OpRegistry& registry);   // Shape, ShapeN, Size, Rank
void RegisterTextOps(OpRegistry& registry);         // StringFormat, PrintV2
void RegisterControlFlowOps(OpRegistry& registry);  // If, Case, While, PartitionedCall
void RegisterViewOps(OpRegistry& registry);         // Reshape, Squeeze, Unsqueeze, ExpandDims
void RegisterTransposeOps(OpRegistry& registry);    // Transpose, Permute
void RegisterTransDataOps(OpRegistry& registry);    // TransData
void RegisterBroadcastOps(OpRegistry& registry);    // BroadcastTo, Expand, Tile
void RegisterConcatOps(OpRegistry& registry);       // ConcatV2, Pack, Unpack, SplitV, Split
void RegisterSliceOps(OpRegistry& registry);        // StridedSliceV2, Slice
void RegisterFillOps(OpRegistry& registry);         // Fill, Empty, ZerosLike, OnesLike, Range
void RegisterTriangleOps(OpRegistry& registry);     // Triu, Tril
void RegisterPadOps(OpRegistry& registry);          // Pad, PadV3, MirrorPad
void RegisterRearrangeOps(OpRegistry& registry);    // ReverseV2, Roll, RepeatInterleave ...
void RegisterStridedOps(OpRegistry& registry);      // AsStrided, ViewCopy
void RegisterMakeOps(OpRegistry& registry);         // OneHot, Eye, LinSpace
// Forms of operators that the others have registered before, see attr_forms.cc.
void RegisterAttrForms(OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_SHAPE_FAMILY_H_
