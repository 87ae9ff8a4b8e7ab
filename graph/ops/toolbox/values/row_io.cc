#include "graph/ops/toolbox/values/row_io.h"

#include <cstring>

#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {

const float* LoadRow(DataType dtype, const void* data, int64_t first, int64_t count, float* room) {
  if (dtype == DataType::kFloat) return static_cast<const float*>(data) + first;
  const ConvertFn widen = dtype == DataType::kFloat16 ? HalfToFloat : BfloatToFloat;
  widen(static_cast<const uint16_t*>(data) + first, room, static_cast<size_t>(count));
  return room;
}

void StoreRow(DataType dtype, const float* row, void* data, int64_t first, int64_t count) {
  if (dtype == DataType::kFloat) {
    float* to = static_cast<float*>(data) + first;
    if (to != row && count > 0) std::memcpy(to, row, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  const ConvertFn narrow = dtype == DataType::kFloat16 ? FloatToHalf : FloatToBfloat;
  narrow(row, static_cast<uint16_t*>(data) + first, static_cast<size_t>(count));
}

}  // namespace npumesh
