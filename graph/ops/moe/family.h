// The moe family: routing of experts on one rank.
#ifndef NPUMESH_GRAPH_OPS_MOE_FAMILY_H_
#define NPUMESH_GRAPH_OPS_MOE_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterMoeFamily(OpRegistry& registry);

// Each lives in a file of its name.
void RegisterMoeGatingOps(OpRegistry& registry);     // MoeGatingTopK ...
void RegisterMoeRoutingOps(OpRegistry& registry);    // MoeInitRouting, -V2, -V3
void RegisterMoeFinalizeOps(OpRegistry& registry);   // MoeFinalizeRoutingV2 ...
void RegisterMoeReRoutingOps(OpRegistry& registry);  // MoeReRouting
void RegisterMoeTokenOps(OpRegistry& registry);      // MoeTokenPermute ... (token_permute.cc)

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MOE_FAMILY_H_
