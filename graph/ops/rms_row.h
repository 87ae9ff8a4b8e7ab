// The norm of one row by its root mean square.
#ifndef NPUMESH_GRAPH_OPS_RMS_ROW_H_
#define NPUMESH_GRAPH_OPS_RMS_ROW_H_

#include <cmath>

#include "graph/ops/row_math.h"

namespace npumesh {

// x = x / sqrt(mean(x^2) + epsilon) * gamma. The root is computed in double, rounded once, and
// multiplied before gamma is.
inline void RmsNormalise(float* x, const float* gamma, double epsilon, int64_t width) {
  const double mean = SumOfSquares(x, width) / static_cast<double>(width);
  ScaleRow(x, static_cast<float>(1.0 / std::sqrt(mean + epsilon)), width, x);
  MultiplyRow(x, gamma, width, x);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_RMS_ROW_H_
