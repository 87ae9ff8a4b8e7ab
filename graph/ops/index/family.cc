#include "graph/ops/index/family.h"

namespace npumesh {

void RegisterIndexFamily(OpRegistry& registry) {
  RegisterGatherOps(registry);
  RegisterScatterOps(registry);
  RegisterScatterListOps(registry);
  RegisterIndexOps(registry);
  RegisterEmbeddingOps(registry);
  RegisterSelectionOps(registry);
  RegisterOrderOps(registry);
  RegisterTopKTopPOps(registry);
  RegisterSearchOps(registry);
  RegisterHistogramOps(registry);
  RegisterRandomOps(registry);
  RegisterSequenceOps(registry);
}

}  // namespace npumesh
