#include "graph/ops/elementwise/family.h"

namespace npumesh {

void RegisterElementwiseFamily(OpRegistry& registry) {
  RegisterElementwiseOps(registry);
  RegisterComplexOps(registry);
  RegisterActivationOps(registry);
  RegisterCompareOps(registry);
  RegisterPointwiseMathOps(registry);
  RegisterPointwiseActivationOps(registry);
  RegisterPointwiseGradientOps(registry);
  RegisterBitwiseOps(registry);
  RegisterOptimizerOps(registry);
  RegisterSelectOps(registry);
  RegisterChannelOps(registry);
  RegisterHalvesOps(registry);
  RegisterForeachOps(registry);
}

}  // namespace npumesh
