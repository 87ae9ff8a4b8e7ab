#include "graph/ops/collective/family.h"

#include "graph/ops/collective/collective.h"
#include "graph/ops/collective/local_product.h"

namespace npumesh {

void RegisterCollectiveOps(OpRegistry& registry) {
  hcom::RegisterTensorOps(registry);
  hcom::RegisterBlockOps(registry);
}

void RegisterFusedMatmulOps(OpRegistry& registry) {
  fused::RegisterAllReduceMatmul(registry);
  fused::RegisterRowMatmuls(registry);
  fused::RegisterAllToAllMatmuls(registry);
  fused::RegisterExpertMatmuls(registry);
  fused::RegisterQuantReductions(registry);
}

void RegisterCollectiveFamily(OpRegistry& registry) {
  RegisterCollectiveOps(registry);
  RegisterFusedMatmulOps(registry);
  RegisterMoeDispatchOps(registry);
  RegisterMoeCombineOps(registry);
}

}  // namespace npumesh
