#include "graph/ops/image/family.h"

namespace npumesh {

void RegisterImageFamily(OpRegistry& registry) {
  RegisterQuantConvolutionOps(registry);
  RegisterLinearConvolutionOps(registry);
  RegisterConvolutionOps(registry);
  RegisterPoolOps(registry);
  RegisterResizeOps(registry);
  RegisterGridSampleOps(registry);
  RegisterCausalConvOps(registry);
  RegisterPatchOps(registry);
  RegisterResampleOps(registry);
}

}  // namespace npumesh
