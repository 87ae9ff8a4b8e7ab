#include "graph/ops/op_families.h"

namespace npumesh {

void RegisterLayoutOps(OpRegistry& registry) {
  RegisterViewOps(registry);
  RegisterTransposeOps(registry);
  RegisterBroadcastOps(registry);
  RegisterConcatOps(registry);
  RegisterSliceOps(registry);
  RegisterFillOps(registry);
  RegisterTriangleOps(registry);
}

}  // namespace npumesh
