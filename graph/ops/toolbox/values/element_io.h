// Elements of every type that quantised operators meet, as float32, and back with saturation.
//
// int4 elements are packed two to a byte, element 2i in the low half of byte i.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ELEMENT_IO_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ELEMENT_IO_H_

#include <cstdint>
#include <string_view>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/core/type_set.h"

namespace npumesh {

// Elements [first, first + count) as floats. int32 rounds to nearest; float4 is packed like int4.
// REQUIRES: kNumbers or kSmallFloats contain the type.
void LoadNumbers(DataType dtype, const void* data, int64_t first, int64_t count, float* to);

// How a float becomes an integer: to the nearest, ties to even, or in a direction.
enum class Rounding : uint8_t { kNearest, kFloor, kCeil, kTruncate };

// Rounds and clips to the range of int4, int8, uint8 or int32; NaN gives 0. REQUIRES: one of these
// types; for int4 `first` is even, and so is `count` unless the tensor ends there.
void StoreIntegers(DataType dtype, Rounding rounding, const float* from, void* data, int64_t first,
                   int64_t count);

// The same as instructions of a loop program; -1 for int4, whose elements have no byte each.
LoopValue LoopIntegers(LoopBuilder& loop, DataType dtype, Rounding rounding, LoopValue value);

// The same for floating types too, to the nearest.
void StoreNumbers(DataType dtype, const float* from, void* data, int64_t first, int64_t count);

// Rounds to float4 or float8_e8m0 to the nearest. float4: ties go to the even code, what is larger
// than the largest becomes it, and so does NaN. float8_e8m0 has powers of two: the sign is dropped,
// a value half way between two powers goes up, 0 becomes the smallest, infinity and NaN become NaN.
// REQUIRES: one of these types; for float4 `first` is even, and so is `count` unless the tensor
// ends there.
void StoreNarrow(DataType dtype, const float* from, void* data, int64_t first, int64_t count);

// A string attribute like "round". Error: kInvalidArgument.
Result<Rounding> RoundingOf(const OpContext& op, std::string_view attribute);

// The largest integer of int8 or int4.
inline float LargestOf(DataType dtype) {
  return dtype == DataType::kInt4 ? 7.0f : 127.0f;
}

// An input of scales, offsets or other factors that a kernel reads as floats. int64 and uint64 hold
// the packed form of TransQuantParamV2: the bits of a float32 in the low half.
class Factors {
 public:
  Factors() = default;  // absent
  // The tensor fed to a port; absent when nothing or a tensor without elements is fed. Error:
  // kUnsupported for types that hold no factors.
  static Result<Factors> Of(const OpContext& op, std::string_view port);
  static Result<Factors> OfSlot(const OpContext& op, int slot);

  bool given() const { return slot_ >= 0; }
  int slot() const { return slot_; }
  int64_t first() const { return first_; }  // element of the input
  DataType dtype() const { return dtype_; }
  int64_t count() const { return count_; }
  // Part `index` of `parts` equal ones; absent stays absent, and one for all stays.
  Factors Part(int64_t index, int64_t parts) const;
  // Elements [first, first + count).
  void Load(const KernelArgs& args, int64_t first, int64_t count, float* to) const;
  float At(const KernelArgs& args, int64_t index) const {
    float value = 0;
    Load(args, index, 1, &value);
    return value;
  }
  // Factor `index`, or the one for all; `otherwise` where they are absent.
  float For(const KernelArgs& args, int64_t index, float otherwise) const {
    return given() ? At(args, count_ == 1 ? 0 : index) : otherwise;
  }

 private:
  int slot_ = -1;
  DataType dtype_ = DataType::kUndefined;
  int64_t first_ = 0, count_ = 0;
};

// The slot of an optional input, or -1 when nothing or a tensor without elements is fed to it.
// `port` may be empty: an input the operator does not have.
int SlotIfFed(const OpContext& op, std::string_view port);

// True for types of which IsNonZero knows the zeros: integers, bool, 16-bit and wider floats,
// complex numbers of two of them.
bool HasZero(DataType dtype);
// The element at `element` is not zero. Minus zero is zero, NaN is not. REQUIRES: HasZero(dtype).
bool IsNonZero(DataType dtype, const void* element);

// Integer `index` of an int32 or int64 tensor.
inline int64_t IntegerAt(DataType dtype, const void* data, int64_t index) {
  return dtype == DataType::kInt64 ? static_cast<const int64_t*>(data)[index]
                                   : static_cast<const int32_t*>(data)[index];
}

// An input of int32 or int64 numbers that a kernel reads one by one: counts, places, lengths.
class Integers {
 public:
  Integers() = default;  // absent
  // The tensor fed to a port; absent when nothing or a tensor without elements is fed. Its type is
  // checked elsewhere (Check::Type with kIndices).
  static Integers Of(const OpContext& op, std::string_view port) {
    const int slot = SlotIfFed(op, port);
    return slot < 0 ? Integers() : OfSlot(op, slot);
  }
  static Integers OfSlot(const OpContext& op, int slot) {
    Integers integers;
    integers.slot_ = slot;
    integers.dtype_ = op.in(slot).dtype;
    integers.count_ = op.in(slot).shape.elements();
    return integers;
  }

  bool given() const { return slot_ >= 0; }
  int slot() const { return slot_; }
  int64_t count() const { return count_; }
  int64_t At(const KernelArgs& args, int64_t index) const {
    return IntegerAt(dtype_, args.in[slot_], index);
  }

 private:
  int slot_ = -1;
  DataType dtype_ = DataType::kUndefined;
  int64_t count_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ELEMENT_IO_H_
