#include "graph/ops/attention/family.h"

namespace npumesh {

void RegisterAttentionFamily(OpRegistry& registry) {
  RegisterInferAttentionOps(registry);
  RegisterTrainAttentionOps(registry);
  RegisterAttentionUpdateOps(registry);
  RegisterRopeOps(registry);
  RegisterCacheOps(registry);
  RegisterGatedDeltaOps(registry);
  RegisterMlaPrologOps(registry);
  RegisterSparseAttentionOps(registry);
}

}  // namespace npumesh
