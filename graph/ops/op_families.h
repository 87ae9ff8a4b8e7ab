// The parts of operator families that fill more than one file. Called by the Register function of
// the family, see op_registry.h.
#ifndef NPUMESH_GRAPH_OPS_OP_FAMILIES_H_
#define NPUMESH_GRAPH_OPS_OP_FAMILIES_H_

#include "graph/ops/op_registry.h"

namespace npumesh {

// element-wise, by the tables of pointwise.h
void RegisterPointwiseMathOps(OpRegistry& registry);        // Tan, Asin, Round, ClipByValueV2 ...
void RegisterPointwiseActivationOps(OpRegistry& registry);  // Elu, Mish, Softplus, PRelu ...
void RegisterPointwiseGradientOps(OpRegistry& registry);    // ReluGrad, GeluGrad, MseLoss ...
void RegisterBitwiseOps(OpRegistry& registry);              // BitwiseAnd, RightShift ...
void RegisterOptimizerOps(OpRegistry& registry);            // ApplyAdam, ApplyMomentum, SGD ...

// reductions and order
void RegisterStatisticOps(OpRegistry& registry);  // ReduceStdV2, ReduceLogSumExp, LpNormV2 ...
void RegisterOrderOps(OpRegistry& registry);      // Sort, TopKV2, ArgMaxV2, Cumsum ...
void RegisterSearchOps(OpRegistry& registry);     // SearchSorted, Bucketize

// structure
void RegisterShapeQueryOps(OpRegistry& registry);  // Shape, ShapeN, Size, Rank
void RegisterTextOps(OpRegistry& registry);        // StringFormat, PrintV2

void RegisterControlFlowOps(OpRegistry& registry);  // If, Case, While, PartitionedCall
void RegisterSelectionOps(OpRegistry& registry);    // NonZero, Where, MaskedSelect, Unique ...

// layout
void RegisterViewOps(OpRegistry& registry);       // Reshape, Squeeze, Unsqueeze, ExpandDims
void RegisterTransposeOps(OpRegistry& registry);  // Transpose, Permute
void RegisterTransDataOps(OpRegistry& registry);  // TransData
void RegisterBroadcastOps(OpRegistry& registry);  // BroadcastTo, Expand, Tile
void RegisterConcatOps(OpRegistry& registry);     // ConcatV2, Pack, Unpack, SplitV, Split
void RegisterSliceOps(OpRegistry& registry);      // StridedSliceV2, Slice
void RegisterFillOps(OpRegistry& registry);       // Fill, Empty, ZerosLike, OnesLike, Range
void RegisterTriangleOps(OpRegistry& registry);   // Triu, Tril

void RegisterPadOps(OpRegistry& registry);        // Pad, PadV3, MirrorPad
void RegisterRearrangeOps(OpRegistry& registry);  // ReverseV2, Roll, RepeatInterleave ...
void RegisterStridedOps(OpRegistry& registry);    // AsStrided, ViewCopy
void RegisterMakeOps(OpRegistry& registry);       // OneHot, Eye, LinSpace

// gather
void RegisterScatterOps(OpRegistry& registry);    // ScatterElements, ScatterNdUpdate ...
void RegisterIndexOps(OpRegistry& registry);      // GatherNd, IndexByTensor, IndexPutV2
void RegisterEmbeddingOps(OpRegistry& registry);  // EmbeddingBag, EmbeddingDenseGrad
void RegisterSelectOps(OpRegistry& registry);     // Select, MaskedScatter

// forms of operators that other families have registered before, see attr_forms.cc
void RegisterAttrForms(OpRegistry& registry);

// norm
void RegisterSoftmaxOps(OpRegistry& registry);  // SoftmaxV2

// attention
void RegisterInferAttentionOps(OpRegistry& registry);   // FusedInferAttentionScore ...
void RegisterTrainAttentionOps(OpRegistry& registry);   // FlashAttentionScore ...
void RegisterAttentionUpdateOps(OpRegistry& registry);  // AttentionUpdate
void RegisterRopeOps(OpRegistry& registry);             // RotaryPositionEmbedding ...
void RegisterCacheScatterOps(OpRegistry& registry);     // ScatterPaKvCache
void RegisterNormRopeCacheOps(OpRegistry& registry);    // KvRmsNormRopeCache

// quantisation
void RegisterQuantiseOps(OpRegistry& registry);       // DynamicQuant, AscendQuantV2 ...
void RegisterDequantiseOps(OpRegistry& registry);     // AscendDequant, AscendAntiQuantV2 ...
void RegisterDequantSwigluOps(OpRegistry& registry);  // DequantSwigluQuant
void RegisterQuantMatmulOps(OpRegistry& registry);    // QuantBatchMatmulV3 ...
void RegisterGroupedMatmulOps(OpRegistry& registry);  // GroupedMatmul

// mixture of experts
void RegisterMoeGatingOps(OpRegistry& registry);     // MoeGatingTopK ...
void RegisterMoeRoutingOps(OpRegistry& registry);    // MoeInitRoutingV3 ...
void RegisterMoeFinalizeOps(OpRegistry& registry);   // MoeFinalizeRoutingV2 ...
void RegisterMoeReRoutingOps(OpRegistry& registry);  // MoeReRouting
void RegisterMoeDispatchOps(OpRegistry& registry);   // MoeDistributeDispatch, -V2
void RegisterMoeCombineOps(OpRegistry& registry);    // MoeDistributeCombine, -V2 ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_OP_FAMILIES_H_
