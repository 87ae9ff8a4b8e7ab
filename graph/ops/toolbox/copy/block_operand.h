// Operand: one input of an element-wise kernel, delivered in blocks of the wanted type, in the
// order of the output.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_COPY_BLOCK_OPERAND_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_COPY_BLOCK_OPERAND_H_

#include <cstddef>

#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {

// Elements of a block.
inline constexpr size_t kBlockElements = 512;

inline constexpr size_t kWidestElement = 16;

struct alignas(64) BlockBuffer {
  std::byte bytes[kBlockElements * kWidestElement];
};

// Thread-safety: immutable.
class Operand {
 public:
  // REQUIRES: `stored` has one element or broadcasts to `order`; FindNumberConvert(stored,
  // wanted) exists unless the types are equal.
  Operand(const TensorType& stored, DataType wanted, const Shape& order);

  // Prepares a run: a single element is converted and repeated once for all blocks.
  // `room` has kBlockElements of the wanted type, aligned to 64 bytes.
  void Start(const void* data, std::byte* room) const;

  // Elements [begin, begin + count): in place, or in `room`.
  const void* Block(const void* data, int64_t begin, size_t count, std::byte* room) const;

  // Blocks need no room.
  bool in_place() const { return plan_.direct() && convert_ == nullptr; }
  // Start fills the room for all blocks.
  bool fills_once() const { return plan_.scalar() && !plan_.direct(); }

 private:
  BroadcastPlan plan_;
  size_t stored_width_, wanted_width_;
  ConvertFn convert_;  // null: already of the wanted type
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_COPY_BLOCK_OPERAND_H_
