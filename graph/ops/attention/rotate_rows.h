// The inner loop of rotary embedding as frameworks write it out, by vector instructions.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_ROTATE_ROWS_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_ROTATE_ROWS_H_

#include <cstdint>

#include "runtime/base/data_type.h"

namespace npumesh {

// Rows of x and of the two tables, all of one type. Distances are in elements; 0 repeats a row.
struct RotatedRows {
  const void* x = nullptr;
  const void* cos = nullptr;
  const void* sin = nullptr;
  int64_t rows = 0;
  int64_t x_stride = 0, cos_stride = 0, sin_stride = 0;
  int64_t y_stride = 0;  // of the result
};

// y = x * cos + (-x2, x1) * sin for x = (x1, x2), rows of `width` elements. Both products and the
// sum are computed in float32 and each is rounded to the type, as by Neg, Mul and Add one by one;
// of a sum of two NaN the sign is open. y may be one of the operands whose rows lie like those of
// y. REQUIRES: float32, float16 or bfloat16; an even width.
void RotateRows(DataType dtype, const RotatedRows& from, int64_t width, void* y);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_ROTATE_ROWS_H_
