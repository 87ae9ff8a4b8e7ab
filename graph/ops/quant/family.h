// The quant family: eight bits and fewer.
#ifndef NPUMESH_GRAPH_OPS_QUANT_FAMILY_H_
#define NPUMESH_GRAPH_OPS_QUANT_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterQuantFamily(OpRegistry& registry);

// Each lives in a file of its name.
void RegisterQuantiseOps(OpRegistry& registry);         // DynamicQuant, AscendQuantV2 ...
void RegisterDequantiseOps(OpRegistry& registry);       // AscendDequant, AscendAntiQuantV2 ...
void RegisterDequantSwigluOps(OpRegistry& registry);    // DequantSwigluQuant
void RegisterSwigluQuantOps(OpRegistry& registry);      // SwiGluQuant
void RegisterQuantMatmulOps(OpRegistry& registry);      // QuantBatchMatmulV3 ...
void RegisterGroupedMatmulOps(OpRegistry& registry);    // GroupedMatmul
void RegisterActivationQuantOps(OpRegistry& registry);  // GeluQuant, GroupQuant, QuantMax
void RegisterBlockQuantOps(OpRegistry& registry);       // DynamicBlockQuant ...
void RegisterNormQuantOps(OpRegistry& registry);        // AddRmsNormDynamicQuant ...
void RegisterMxQuantOps(OpRegistry& registry);          // DynamicMxQuant, AntiMxQuant ...
void RegisterSwigluMxOps(OpRegistry& registry);         // SwigluMxQuant
void RegisterGroupedSwigluOps(OpRegistry& registry);    // GroupedMatmulSwigluQuantV2
void RegisterGroupedFinalizeOps(OpRegistry& registry);  // GroupedMatmulFinalizeRouting
void RegisterLinearMatmulOps(OpRegistry& registry);     // QLinearMatMul
void RegisterLinearElementsOps(OpRegistry& registry);   // QLinearAdd, QLinearMul, ByteTable
void RegisterFfnOps(OpRegistry& registry);              // FFN
void RegisterRotateQuantOps(OpRegistry& registry);      // RotateQuant
void RegisterDualLevelQuantOps(OpRegistry& registry);   // DynamicDualLevelMxQuant

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_QUANT_FAMILY_H_
