#include "graph/ops/moe/family.h"

namespace npumesh {

void RegisterMoeFamily(OpRegistry& registry) {
  RegisterMoeGatingOps(registry);
  RegisterMoeRoutingOps(registry);
  RegisterMoeFinalizeOps(registry);
  RegisterMoeReRoutingOps(registry);
}

}  // namespace npumesh
