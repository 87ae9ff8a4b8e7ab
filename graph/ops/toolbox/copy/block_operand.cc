#include "graph/ops/toolbox/copy/block_operand.h"

#include <cstring>

namespace npumesh {

Operand::Operand(const TensorType& stored, DataType wanted, const Shape& order)
    : plan_(stored.shape.elements() == 1 ? Shape() : stored.shape, order, WidthOf(stored.dtype)),
      stored_width_(WidthOf(stored.dtype)),
      wanted_width_(WidthOf(wanted)),
      convert_(stored.dtype == wanted ? nullptr : FindNumberConvert(stored.dtype, wanted)) {}

void Operand::Start(const void* data, std::byte* room) const {
  if (!fills_once()) return;
  alignas(kWidestElement) std::byte value[kWidestElement];
  if (convert_ == nullptr) {
    std::memcpy(value, data, wanted_width_);
  } else {
    convert_(data, value, 1);
  }
  const BroadcastPlan repeat(Shape(), Shape({static_cast<int64_t>(kBlockElements)}), wanted_width_);
  repeat.Gather(value, 0, kBlockElements, room);
}

const void* Operand::Block(const void* data, int64_t begin, size_t count, std::byte* room) const {
  if (fills_once()) return room;
  const std::byte* from = static_cast<const std::byte*>(data);
  BlockBuffer stored;
  if (plan_.direct()) {
    from += static_cast<size_t>(begin) * stored_width_;
    if (convert_ == nullptr) return from;
  } else {
    std::byte* const to = convert_ == nullptr ? room : stored.bytes;
    plan_.Gather(from, begin, count, to);
    from = to;
  }
  if (convert_ != nullptr) convert_(from, room, count);
  return room;
}

}  // namespace npumesh
