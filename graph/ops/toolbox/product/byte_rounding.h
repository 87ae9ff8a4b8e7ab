// What becomes of the exact sums of products of bytes: one rounding to a byte, as QLinearConv and
// QLinearMatMul of ONNX ask for it.
//
//   y = saturate(round((sum + added) * scale) + zero)
//
// The sum is added modulo 2^32 and converted to float32, the product rounded to float32 and then to
// the nearest integer, ties to the even one. So the bits are the same on every processor.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_BYTE_ROUNDING_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_BYTE_ROUNDING_H_

#include <cstdint>

#include "runtime/base/data_type.h"

namespace npumesh {

struct ByteRounding {
  DataType y = DataType::kUndefined;  // int8, uint8; float32: not rounded; int32: the sum
  const int32_t* added = nullptr;     // by column
  const float* scale = nullptr;       // by column; int32 needs none
  int32_t zero = 0;                   // of y, where that is a byte
};

// Rows of `columns` sums that follow each other, as rows of y.
void RoundSums(const ByteRounding& rounding, const int32_t* sums, int64_t rows, int64_t columns,
               void* y);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_BYTE_ROUNDING_H_
