#include "graph/ops/attention/family.h"

namespace npumesh {

void RegisterAttentionFamily(OpRegistry& registry) {
  OpRegistry products;
  RegisterInferAttentionOps(products);
  RegisterTrainAttentionOps(products);
  RegisterGatedDeltaOps(products);
  RegisterMlaPrologOps(products);
  RegisterLightningIndexerOps(products);
  RegisterSparseAttentionOps(products);
  registry.AddAll(products, PrecisionClass::kWhite);
  RegisterRopeOps(registry);
  RegisterRopeCacheOps(registry);
  RegisterCacheOps(registry);
  RegisterQkvCacheOps(registry);
}

}  // namespace npumesh
