#include "graph/ops/shape/family.h"

namespace npumesh {

void RegisterShapeFamily(OpRegistry& registry) {
  RegisterStructureOps(registry);
  RegisterShapeQueryOps(registry);
  RegisterTextOps(registry);
  RegisterControlFlowOps(registry);
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
