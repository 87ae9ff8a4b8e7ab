#include "graph/ops/moe/family.h"

namespace npumesh {

void RegisterMoeFamily(OpRegistry& registry) {
  OpRegistry gates;  // are made of softmax
  RegisterMoeGatingOps(gates);
  registry.AddAll(gates, PrecisionClass::kBlack);
  RegisterMoeRoutingOps(registry);
  RegisterMoeFinalizeOps(registry);
  RegisterMoeReRoutingOps(registry);
  RegisterMoeTokenOps(registry);
}

}  // namespace npumesh
