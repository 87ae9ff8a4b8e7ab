// Elements of bytes that stand for scale * (byte - zero).
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_QUANT_BYTE_ELEMENTS_H_
#define NPUMESH_GRAPH_OPS_QUANT_BYTE_ELEMENTS_H_

#include <cstdint>

#include "runtime/base/data_type.h"

namespace npumesh {

// One side: int8 or uint8.
struct ByteScale {
  DataType dtype = DataType::kUndefined;
  float scale = 1;
  int32_t zero = 0;
};

// y = saturate(round((value of x1 + value of x2) / scale of y) + zero of y), computed in float32,
// each step rounded; or the product in place of the sum. x2 has as many elements as x1.
struct ByteCombination {
  ByteScale x1, x2, y;  // all of one type
  bool product = false;
};
void CombineBytes(const ByteCombination& combination, const void* x1, const void* x2, int64_t count,
                  void* y);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_QUANT_BYTE_ELEMENTS_H_
