// The attention family: attention, its caches and its rotations.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_FAMILY_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterAttentionFamily(OpRegistry& registry);

// Each lives in a file of its name.
void RegisterInferAttentionOps(OpRegistry& registry);    // FusedInferAttentionScore ...
void RegisterTrainAttentionOps(OpRegistry& registry);    // FlashAttentionScore ...
void RegisterRopeOps(OpRegistry& registry);              // RotaryPositionEmbedding ...
void RegisterRopeCacheOps(OpRegistry& registry);         // RopeWithSinCosCache
void RegisterCacheOps(OpRegistry& registry);             // ScatterPaKvCache, GatherPaKvCache ...
void RegisterQkvCacheOps(OpRegistry& registry);          // DequantRopeQuantKvcache ...
void RegisterGatedDeltaOps(OpRegistry& registry);        // RecurrentGatedDeltaRule ...
void RegisterMlaPrologOps(OpRegistry& registry);         // MlaProlog, MlaPrologV2, MlaPrologV3
void RegisterLightningIndexerOps(OpRegistry& registry);  // QuantLightningIndexer, too
void RegisterSparseAttentionOps(OpRegistry& registry);   // SparseFlashAttention ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_FAMILY_H_
