// The shape family: values stay, shapes change; and the ends of a graph.
#ifndef NPUMESH_GRAPH_OPS_SHAPE_FAMILY_H_
#define NPUMESH_GRAPH_OPS_SHAPE_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterShapeFamily(OpRegistry& registry);

void RegisterStructureOps(OpRegistry& registry);    // Identity, Assign, Bitcast; Data, Const ...
void RegisterTextOps(OpRegistry& registry);         // StringFormat, PrintV2
void RegisterControlFlowOps(OpRegistry& registry);  // If, Case, While, PartitionedCall
void RegisterViewOps(OpRegistry& registry);         // Reshape, Squeeze ...; Shape, Size, Rank
void RegisterTransDataOps(OpRegistry& registry);    // TransData
void RegisterConcatOps(OpRegistry& registry);       // ConcatV2, Pack, Unpack, SplitV, Split
void RegisterChunkOps(OpRegistry& registry);        // ChunkCat
void RegisterSliceOps(OpRegistry& registry);        // StridedSliceV2, Slice
void RegisterFillOps(OpRegistry& registry);         // Fill, Empty, ZerosLike, OnesLike, Range
void RegisterPadOps(OpRegistry& registry);          // Pad, PadV3, MirrorPad
void RegisterRearrangeOps(OpRegistry& registry);    // ReverseV2, Roll, RepeatInterleave ...
void RegisterStridedOps(OpRegistry& registry);      // Transpose, BroadcastTo, Tile, AsStrided ...
void RegisterMakeOps(OpRegistry& registry);         // OneHot, Eye, Triu, Tril, LinSpace

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_SHAPE_FAMILY_H_
