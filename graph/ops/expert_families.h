// Families of operators around experts that fill files of their own. Called by BuiltinOps.
#ifndef NPUMESH_GRAPH_OPS_EXPERT_FAMILIES_H_
#define NPUMESH_GRAPH_OPS_EXPERT_FAMILIES_H_

#include "graph/ops/op_registry.h"

namespace npumesh {

void RegisterMoeInitRoutingOps(OpRegistry& registry);   // MoeInitRouting, -V2
void RegisterGroupedSwigluOps(OpRegistry& registry);    // GroupedMatmulSwigluQuantV2
void RegisterGroupedFinalizeOps(OpRegistry& registry);  // GroupedMatmulFinalizeRouting
void RegisterFfnOps(OpRegistry& registry);              // FFN

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_EXPERT_FAMILIES_H_
