#include "graph/ops/toolbox/values/quantised_row.h"

#include <algorithm>
#include <cmath>

#include "graph/ops/toolbox/values/small_float.h"

namespace npumesh {
namespace {

template <typename T, typename Encode>
void StoreAs(Encode encode, const float* from, void* data, int64_t first, int64_t count) {
  T* to = static_cast<T*>(data) + first;
  for (int64_t i = 0; i < count; ++i) to[i] = encode(from[i]);
}

}  // namespace

float LargestNarrow(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat8E5M2:
      return 57344.0f;
    case DataType::kFloat8E4M3Fn:
      return 448.0f;
    case DataType::kHifloat8:
      return 32768.0f;
    default:
      return LargestOf(dtype);
  }
}

void StoreNarrow(DataType dtype, Rounding rounding, const float* from, void* data, int64_t first,
                 int64_t count) {
  switch (dtype) {
    case DataType::kFloat8E5M2:
      StoreAs<Float8E5m2>(ToFloat8E5m2, from, data, first, count);
      return;
    case DataType::kFloat8E4M3Fn:
      StoreAs<Float8E4m3>(ToFloat8E4m3, from, data, first, count);
      return;
    case DataType::kHifloat8:
      StoreAs<Hifloat8>(ToHifloat8, from, data, first, count);
      return;
    default:
      StoreIntegers(dtype, rounding, from, data, first, count);
  }
}

float LargestMagnitude(const float* row, int64_t count) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(row[i]));
  return most;
}

float QuantiseRow(DataType dtype, Rounding rounding, float largest, float* row, int64_t count,
                  void* data, int64_t first) {
  const float scale = LargestMagnitude(row, count) / largest;
  for (int64_t i = 0; i < count; ++i) row[i] = scale == 0 ? 0.0f : row[i] / scale;
  StoreNarrow(dtype, rounding, row, data, first, count);
  return scale;
}

}  // namespace npumesh
