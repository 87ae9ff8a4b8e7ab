// The norm of one row by its root mean square.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_RMS_ROW_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_RMS_ROW_H_

#include <cmath>
#include <cstdint>

#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh {

// 1 / sqrt(mean(x^2) + epsilon), computed in double and rounded once.
inline float RmsScale(const float* x, int64_t count, double epsilon) {
  const double mean = SumOfSquares(x, count) / static_cast<double>(count);
  return static_cast<float>(1.0 / std::sqrt(mean + epsilon));
}

// x = x * RmsScale(x) * gamma, multiplied in this order.
inline void RmsNormalise(float* x, const float* gamma, double epsilon, int64_t width) {
  ScaleRow(x, RmsScale(x, width, epsilon), width, x);
  MultiplyRow(x, gamma, width, x);
}

// The same for elements [first, first + count) of `y`, which has `dtype`; `rounds`: the quotient is
// rounded to `dtype` before it is multiplied by gamma. Returns RmsScale. `room` has place for the
// row; the three arrays of floats may not overlap.
inline float NormaliseRow(DataType dtype, const float* x, const float* gamma, int64_t count,
                          double epsilon, bool rounds, float* room, void* y, int64_t first) {
  const float rstd = RmsScale(x, count, epsilon);
  ScaleRow(x, rstd, count, room);
  if (rounds && dtype != DataType::kFloat) {
    StoreRow(dtype, room, y, first, count);
    LoadRow(dtype, y, first, count, room);
  }
  MultiplyRow(room, gamma, count, room);
  StoreRow(dtype, room, y, first, count);
  return rstd;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_RMS_ROW_H_
