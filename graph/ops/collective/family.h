// The collective family: operators that talk to other ranks.
#ifndef NPUMESH_GRAPH_OPS_COLLECTIVE_FAMILY_H_
#define NPUMESH_GRAPH_OPS_COLLECTIVE_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterCollectiveFamily(OpRegistry& registry);

// Each lives in a file of its name.
void RegisterCollectiveOps(OpRegistry& registry);   // HcomAllReduce ...
void RegisterFusedMatmulOps(OpRegistry& registry);  // MatmulAllReduce, AllGatherMatmul ...
void RegisterMoeDispatchOps(OpRegistry& registry);  // MoeDistributeDispatch, -V2
void RegisterMoeCombineOps(OpRegistry& registry);   // MoeDistributeCombine, -V2 ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_COLLECTIVE_FAMILY_H_
