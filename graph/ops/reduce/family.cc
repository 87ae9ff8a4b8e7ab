#include "graph/ops/reduce/family.h"

namespace npumesh {

void RegisterReduceFamily(OpRegistry& registry) {
  RegisterReduceOps(registry);
  OpRegistry lossy;
  RegisterStatisticOps(lossy);
  RegisterNormOps(lossy);
  RegisterSoftmaxOps(lossy);
  RegisterSoftmaxRowOps(lossy);
  RegisterLayerNormOps(lossy);
  RegisterGroupNormOps(lossy);
  RegisterBatchNormOps(lossy);
  RegisterLossOps(lossy);
  RegisterCrossEntropyOps(lossy);
  RegisterMaskedSoftmaxOps(lossy);
  registry.AddAll(lossy, PrecisionClass::kBlack);
}

}  // namespace npumesh
