// The inner loops of softmax and of norms: rows of floats, by vector instructions. Every processor
// gives the same bits, those of the plain loops in row_io.h and float_exp.h.
//
// Thread-safety: pure functions. Rows need no alignment; `y` may be `x`.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ROW_MATH_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ROW_MATH_H_

#include <cstdint>

#include "runtime/base/data_type.h"

namespace npumesh {

// The largest element, -inf of none. A NaN may be missed here: it stays in the exponentials and
// spoils the sum, as it should.
float LargestInRow(const float* x, int64_t count);

// BlockedSum of the elements, and of their squares.
double SumOfRow(const float* x, int64_t count);
double SumOfSquares(const float* x, int64_t count);

// y = ExpOfNonPositive(x - most).
void ExponentialsOfRow(const float* x, float most, int64_t count, float* y);

// y = the softmax of x. A row of nothing but -inf gives NaN, because -inf - -inf is NaN.
void SoftmaxRow(const float* x, int64_t count, float* y);

// y = x + summand.
void ShiftRow(const float* x, float summand, int64_t count, float* y);
// y = x * factor.
void ScaleRow(const float* x, float factor, int64_t count, float* y);
// y = x * factors, and y = x + summands.
void MultiplyRow(const float* x, const float* factors, int64_t count, float* y);
void AddRow(const float* x, const float* summands, int64_t count, float* y);

// Rows of float16 or bfloat16, `stride` elements apart, as floats, `to_stride` apart: far faster
// than row by row when they lie so far apart that no processor foresees the next one.
struct HalfRows {
  DataType dtype = DataType::kFloat16;
  const void* data = nullptr;  // of the first row
  int64_t stride = 0;
  int64_t count = 0, width = 0;
};
void WidenRows(const HalfRows& rows, float* to, int64_t to_stride);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ROW_MATH_H_
