#include "graph/ops/toolbox/values/quantised_row.h"

#include <algorithm>
#include <cmath>

#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {

float LargestNarrow(DataType dtype) {
  if (dtype == DataType::kFloat8E5M2) return 57344.0f;
  if (dtype == DataType::kFloat8E4M3Fn) return 448.0f;
  return dtype == DataType::kHifloat8 ? 32768.0f : LargestOf(dtype);
}

void StoreNarrow(DataType dtype, Rounding rounding, const float* from, void* data, int64_t first,
                 int64_t count) {
  if (!kEightBitFloats.Contains(dtype)) {
    return StoreIntegers(dtype, rounding, from, data, first, count);
  }
  FindConvert(DataType::kFloat, dtype)(from, static_cast<std::byte*>(data) + first,
                                       static_cast<size_t>(count));
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

LoopQuantised LoopQuantiseRow(LoopBuilder& loop, DataType dtype, Rounding rounding, LoopValue row) {
  const LoopValue zero = loop.Constant(0);
  const LoopValue most = loop.Emit(LoopOp::kRowMax, {loop.Emit(LoopOp::kAbs, {row})});
  const LoopValue magnitude = loop.Emit(LoopOp::kMax, {most, zero});  // of a row of NaNs 0
  const LoopValue scale = loop.Emit(
      LoopOp::kDiv, {magnitude, loop.Constant(static_cast<double>(LargestNarrow(dtype)))});
  const LoopValue scaled = loop.Emit(
      LoopOp::kSelect,
      {loop.Emit(LoopOp::kEqual, {scale, zero}), zero, loop.Emit(LoopOp::kDiv, {row, scale})});
  return {LoopIntegers(loop, dtype, rounding, scaled), scale};
}

}  // namespace npumesh
