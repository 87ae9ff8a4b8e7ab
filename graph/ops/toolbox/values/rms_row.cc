#include "graph/ops/toolbox/values/rms_row.h"

#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {

float NormaliseRow(DataType dtype, const float* x, const float* gamma, int64_t count,
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
