// The parts of operator families that fill more than one file. Called by the Register function of
// the family, see op_registry.h.
#ifndef NPUMESH_GRAPH_OPS_OP_FAMILIES_H_
#define NPUMESH_GRAPH_OPS_OP_FAMILIES_H_

#include "graph/ops/op_registry.h"

namespace npumesh {

// structure
void RegisterShapeQueryOps(OpRegistry& registry);  // Shape, ShapeN, Size, Rank

// layout
void RegisterViewOps(OpRegistry& registry);       // Reshape, Squeeze, Unsqueeze, ExpandDims
void RegisterTransposeOps(OpRegistry& registry);  // Transpose, Permute
void RegisterBroadcastOps(OpRegistry& registry);  // BroadcastTo, Expand, Tile
void RegisterConcatOps(OpRegistry& registry);     // ConcatV2, Pack, Unpack, SplitV, Split
void RegisterSliceOps(OpRegistry& registry);      // StridedSliceV2, Slice
void RegisterFillOps(OpRegistry& registry);       // Fill, Empty, ZerosLike, OnesLike, Range
void RegisterTriangleOps(OpRegistry& registry);   // Triu, Tril

// norm
void RegisterSoftmaxOps(OpRegistry& registry);  // SoftmaxV2

// attention
void RegisterInferAttentionOps(OpRegistry& registry);  // FusedInferAttentionScore ...
void RegisterTrainAttentionOps(OpRegistry& registry);  // FlashAttentionScore ...
void RegisterRopeOps(OpRegistry& registry);            // RotaryPositionEmbedding ...
void RegisterCacheScatterOps(OpRegistry& registry);    // ScatterPaKvCache
void RegisterNormRopeCacheOps(OpRegistry& registry);   // KvRmsNormRopeCache

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_OP_FAMILIES_H_
