#include "graph/ops/attention/family.h"

namespace npumesh {

void RegisterAttentionFamily(OpRegistry& registry) {
  RegisterInferAttentionOps(registry);
  RegisterTrainAttentionOps(registry);
  RegisterAttentionUpdateOps(registry);
  RegisterAttentionGradients(registry);
  RegisterRopeOps(registry);
  RegisterRotaryGradients(registry);
  RegisterCacheScatterOps(registry);
  RegisterNormRopeCacheOps(registry);
  RegisterGatedDeltaOps(registry);
  RegisterMlaPrologOps(registry);
  RegisterLightningIndexerOps(registry);
  RegisterSparseAttentionOps(registry);
}

}  // namespace npumesh
