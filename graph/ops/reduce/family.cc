#include "graph/ops/reduce/family.h"

namespace npumesh {

void RegisterReduceFamily(OpRegistry& registry) {
  RegisterReduceOps(registry);
  RegisterStatisticOps(registry);
  RegisterNormOps(registry);
  RegisterSoftmaxOps(registry);
  RegisterSoftmaxRowOps(registry);
  RegisterLayerNormOps(registry);
  RegisterGroupNormOps(registry);
  RegisterBatchNormOps(registry);
  RegisterLossOps(registry);
}

}  // namespace npumesh
