// Conversion of elements between data types.
//
// float -> float rounds once, to nearest even. float -> integer truncates, NaN gives 0, overflow
// saturates. integer -> integer keeps the low bits. Anything -> bool is "not zero" (NaN is true),
// bool -> number is 0 or 1.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_CAST_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_CAST_H_

#include <cstddef>
#include <cstdint>

#include "graph/ops/core/op_registry.h"
#include "runtime/base/data_type.h"

namespace npumesh {

// Converts `count` elements. `to` may be `from` when the elements have the same width.
using ConvertFn = void (*)(const void* from, void* to, size_t count);

// Null when one of the types is not a float (8, 16, 32, 64 bits, bfloat16), integer or bool.
ConvertFn FindConvert(DataType from, DataType to);

// The same, and between complex types, part by part.
ConvertFn FindNumberConvert(DataType from, DataType to);

// Bytes of one element of a type that has conversions.
inline size_t WidthOf(DataType dtype) {
  return static_cast<size_t>(BitsOf(dtype)) / 8;
}

// Calls f(Element()) for a plain type of 1, 2, 4, 8 or 16 bytes.
template <typename F>
auto ByWidth(size_t bytes, F f) {
  struct Sixteen {
    uint64_t half[2];
  };
  switch (bytes) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    default:
      return f(Sixteen());
  }
}

// SIMD versions of the conversions that every 16-bit float kernel needs (cast_half.cc).
void HalfToFloat(const void* from, void* to, size_t count);
void FloatToHalf(const void* from, void* to, size_t count);
void BfloatToFloat(const void* from, void* to, size_t count);
void FloatToBfloat(const void* from, void* to, size_t count);

void RegisterCastOp(OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_CAST_H_
