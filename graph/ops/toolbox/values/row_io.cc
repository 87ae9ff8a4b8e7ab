#include "graph/ops/toolbox/values/row_io.h"

#include <cstring>

#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {

const float* LoadRow(DataType dtype, const void* data, int64_t first, int64_t count, float* room) {
  if (dtype == DataType::kFloat) return static_cast<const float*>(data) + first;
  const uint16_t* halves = static_cast<const uint16_t*>(data) + first;
  if (dtype == DataType::kFloat16) {
    HalfToFloat(halves, room, static_cast<size_t>(count));
  } else {
    BfloatToFloat(halves, room, static_cast<size_t>(count));
  }
  return room;
}

void StoreRow(DataType dtype, const float* row, void* data, int64_t first, int64_t count) {
  if (dtype == DataType::kFloat) {
    float* to = static_cast<float*>(data) + first;
    if (to != row && count > 0) std::memcpy(to, row, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  uint16_t* halves = static_cast<uint16_t*>(data) + first;
  if (dtype == DataType::kFloat16) {
    FloatToHalf(row, halves, static_cast<size_t>(count));
  } else {
    FloatToBfloat(row, halves, static_cast<size_t>(count));
  }
}

}  // namespace npumesh
