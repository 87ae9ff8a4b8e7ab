// The families that compute in one operator what graphs write out in several: products with what
// stands around them, norms and activations with quantisation, attention over chosen positions.
// Called by BuiltinOps.
#ifndef NPUMESH_GRAPH_OPS_FUSED_FAMILIES_H_
#define NPUMESH_GRAPH_OPS_FUSED_FAMILIES_H_

#include "graph/ops/op_registry.h"

namespace npumesh {

void RegisterTransposeMatmulOps(OpRegistry& registry);   // TransposeBatchMatMul ...
void RegisterFusedProductOps(OpRegistry& registry);      // FusedMatMul, FullyConnection
void RegisterLoraOps(OpRegistry& registry);              // AddLora
void RegisterActivationQuantOps(OpRegistry& registry);   // GeluQuant, GroupQuant, QuantMax
void RegisterBlockQuantOps(OpRegistry& registry);        // DynamicBlockQuant ...
void RegisterNormQuantOps(OpRegistry& registry);         // AddRmsNormDynamicQuant ...
void RegisterMxQuantOps(OpRegistry& registry);           // DynamicMxQuant, AntiMxQuant ...
void RegisterSwigluMxOps(OpRegistry& registry);          // SwigluMxQuant
void RegisterGatedDeltaOps(OpRegistry& registry);        // RecurrentGatedDeltaRule ...
void RegisterMlaPrologOps(OpRegistry& registry);         // MlaProlog, MlaPrologV2, MlaPrologV3
void RegisterLightningIndexerOps(OpRegistry& registry);  // LightningIndexer ...
void RegisterSparseAttentionOps(OpRegistry& registry);   // SparseFlashAttention
void RegisterCausalConvOps(OpRegistry& registry);        // FusedCausalConv1d ...
void RegisterScatterListOps(OpRegistry& registry);       // ScatterList, QuantUpdateScatter, Cmo

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_FUSED_FAMILIES_H_
