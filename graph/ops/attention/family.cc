#include "graph/ops/attention/family.h"

namespace npumesh {

void RegisterAttentionFamily(OpRegistry& registry) {
  RegisterInferAttentionOps(registry);
  RegisterTrainAttentionOps(registry);
  RegisterRopeOps(registry);
  RegisterCacheOps(registry);
  RegisterGatedDeltaOps(registry);
  RegisterMlaPrologOps(registry);
  RegisterSparseAttentionOps(registry);
}

}  // namespace npumesh
