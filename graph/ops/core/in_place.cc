#include "graph/ops/core/in_place.h"

namespace npumesh {

std::vector<InPlace> InPlacesOf(const Operator& op, const OpContext& context) {
  std::vector<InPlace> places;
  for (const InPlace& place : op.in_place) {
    const PortSpec& port = op.schema.inputs[static_cast<size_t>(place.slot)];
    const int first = context.slot(port.name);
    const int tensors = port.kind == PortKind::kDynamic ? context.count(port.name) : 1;
    for (int i = 0; i < tensors; ++i) places.push_back({place.output + i, first + i});
  }
  return places;
}

}  // namespace npumesh
