#include "graph/ops/quant/family.h"

namespace npumesh {

void RegisterQuantFamily(OpRegistry& all) {
  OpRegistry registry;
  RegisterQuantiseOps(registry);
  RegisterDequantiseOps(registry);
  RegisterDequantSwigluOps(registry);
  RegisterSwigluQuantOps(registry);
  RegisterQuantMatmulOps(registry);
  RegisterGroupedMatmulOps(registry);
  RegisterActivationQuantOps(registry);
  RegisterBlockQuantOps(registry);
  RegisterNormQuantOps(registry);
  RegisterMxQuantOps(registry);
  RegisterSwigluMxOps(registry);
  RegisterGroupedSwigluOps(registry);
  RegisterGroupedFinalizeOps(registry);
  RegisterLinearMatmulOps(registry);
  RegisterLinearElementsOps(registry);
  RegisterFfnOps(registry);
  RegisterRotateQuantOps(registry);
  RegisterDualLevelQuantOps(registry);
  all.AddAll(registry, PrecisionClass::kKept);
}

}  // namespace npumesh
