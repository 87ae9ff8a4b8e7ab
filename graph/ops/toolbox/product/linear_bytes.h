// What products of bytes that stand for scale * (byte - zero) have in common, as QLinearConv and
// QLinearMatMul of ONNX do: single bytes, and what becomes of their exact sums.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_LINEAR_BYTES_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_LINEAR_BYTES_H_

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "graph/ops/core/check.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/product/byte_rounding.h"

namespace npumesh {

inline constexpr TypeSet kLinearBytes = {DataType::kInt8, DataType::kUint8};

inline int32_t ByteAt(DataType dtype, const void* bytes, int64_t at) {
  return dtype == DataType::kInt8 ? static_cast<const int8_t*>(bytes)[at]
                                  : static_cast<const uint8_t*>(bytes)[at];
}

// from - a * b, modulo 2^32.
inline int32_t LessTimes(int32_t from, int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(from) -
                              static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}

// The slot of an optional port of one of the types, with one of the numbers of elements; -1:
// absent.
int OptionalSlot(const OpContext& op, Check& check, std::string_view port, TypeSet types,
                 std::initializer_list<int64_t> counts);

// The attribute dtype and the optional ports bias, scale and y_zero: y is the sum plus bias
// (int32), times scale (float32), rounded and plus y_zero (bytes).
struct LinearEnd {
  DataType y = DataType::kUndefined;
  int64_t columns = 0;
  int bias = -1, scale = -1, y_zero = -1;  // slots; -1: absent
  bool one_scale = false;                  // for all columns

  static LinearEnd Of(const OpContext& op, Check& check, int64_t columns);

  // Writes what is added to the sums of each column, and their scales (of int32 none); points to
  // both.
  ByteRounding Load(const KernelArgs& args, int32_t* added, float* scales) const;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_LINEAR_BYTES_H_
