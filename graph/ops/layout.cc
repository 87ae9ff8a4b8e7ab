#include "graph/ops/op_families.h"

namespace npumesh {

void RegisterLayoutOps(OpRegistry& registry) {
  RegisterViewOps(registry);
  RegisterTransposeOps(registry);
  RegisterTransDataOps(registry);
  RegisterBroadcastOps(registry);
  RegisterConcatOps(registry);
  RegisterSliceOps(registry);
  RegisterFillOps(registry);
  RegisterTriangleOps(registry);
  RegisterPadOps(registry);
  RegisterRearrangeOps(registry);
  RegisterStridedOps(registry);
  RegisterMakeOps(registry);
  RegisterAttrForms(registry);
}

}  // namespace npumesh
