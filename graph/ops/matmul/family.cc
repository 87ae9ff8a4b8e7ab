#include "graph/ops/matmul/family.h"

namespace npumesh {

void RegisterMatmulFamily(OpRegistry& registry) {
  OpRegistry products;
  RegisterMatmulOps(products);
  RegisterTransposeMatmulOps(products);
  RegisterLoraOps(products);
  RegisterGemmOps(products);
  RegisterRecurrentOps(products);
  registry.AddAll(products, PrecisionClass::kWhite);
  RegisterLinearAlgebraOps(registry);
}

}  // namespace npumesh
