#include "graph/ops/toolbox/copy/block_operand.h"

#include <cstring>

namespace npumesh {

Operand::Operand(const TensorType& stored, DataType wanted, const Shape& order)
    : plan_(stored.shape.elements() == 1 ? Shape() : stored.shape, order, WidthOf(stored.dtype)),
      stored_width_(WidthOf(stored.dtype)),
      wanted_width_(WidthOf(wanted)),
      convert_(stored.dtype == wanted ? nullptr : FindConvert(stored.dtype, wanted)) {}

void Operand::Start(const void* data, BlockBuffer& block) const {
  if (!fills_once()) return;
  BlockBuffer one;
  std::memcpy(one.bytes, data, stored_width_);
  if (convert_ != nullptr) convert_(one.bytes, block.bytes, 1);
  const BroadcastPlan repeat(Shape(), Shape({static_cast<int64_t>(kBlockElements)}), wanted_width_);
  const std::byte* first = convert_ != nullptr ? block.bytes : one.bytes;
  std::byte value[kWidestElement];
  std::memcpy(value, first, wanted_width_);
  repeat.Gather(value, 0, kBlockElements, block.bytes);
}

const void* Operand::Block(const void* data, int64_t begin, size_t count,
                           BlockBuffer& block) const {
  if (fills_once()) return block.bytes;
  const std::byte* from = static_cast<const std::byte*>(data);
  if (plan_.direct()) {
    from += static_cast<size_t>(begin) * stored_width_;
    if (convert_ == nullptr) return from;
    convert_(from, block.bytes, count);
    return block.bytes;
  }
  if (convert_ == nullptr) {
    plan_.Gather(from, begin, count, block.bytes);
    return block.bytes;
  }
  BlockBuffer stored;
  plan_.Gather(from, begin, count, stored.bytes);
  convert_(stored.bytes, block.bytes, count);
  return block.bytes;
}

}  // namespace npumesh
