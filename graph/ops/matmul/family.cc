#include "graph/ops/matmul/family.h"

namespace npumesh {

void RegisterMatmulFamily(OpRegistry& registry) {
  RegisterMatmulOps(registry);
  RegisterTransposeMatmulOps(registry);
  RegisterLoraOps(registry);
}

}  // namespace npumesh
