#include "graph/dump/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "graph/dump/statistics/float_pass.h"
#include "graph/ops/toolbox/values/cast.h"
#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

// Which of the two zeros an extreme is: that of the first element which equals it.
template <typename T>
double WithSignOf(T extreme, const T* values, size_t count) {
  if (extreme == 0) extreme = *std::find(values, values + count, T(0));
  return static_cast<double>(extreme);
}

// `avg += (x - avg) / (i + 1)`: for values whose sum no double can hold.
double RunningMean(const double* values, uint64_t count) {
  double mean = 0;
  for (uint64_t i = 0; i < count; ++i) mean += (values[i] - mean) / static_cast<double>(i + 1);
  return mean;
}

template <typename T>
TensorStatistics FromFindings(const FloatFindings<T>& findings, uint64_t count) {
  TensorStatistics result;
  result.count = count;
  result.nans = findings.nans;
  result.negative_infinities = findings.negative_infinities;
  result.positive_infinities = findings.positive_infinities;
  result.l2norm = std::sqrt(findings.squares);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  result.mean = findings.sum / static_cast<double>(count);
  if (result.negative_infinities > 0 && result.positive_infinities == 0) result.mean = -kInfinity;
  if (result.positive_infinities > 0 && result.negative_infinities == 0) result.mean = kInfinity;
  return result;
}

TensorStatistics OfFloats(const float* values, uint64_t count, bool squares) {
  FloatFindings<float> findings{values[0], values[0]};
  PassOverFloats(values, count, squares, &findings);
  TensorStatistics result = FromFindings(findings, count);
  result.max = WithSignOf(findings.max, values, count);
  result.min = WithSignOf(findings.min, values, count);
  return result;
}

TensorStatistics OfDoubles(const double* values, uint64_t count, bool squares) {
  FloatFindings<double> findings{values[0], values[0]};
  PassOverDoubles(values, count, squares, &findings);
  TensorStatistics result = FromFindings(findings, count);
  if (result.finite() && !std::isfinite(findings.sum)) result.mean = RunningMean(values, count);
  result.max = WithSignOf(findings.max, values, count);
  result.min = WithSignOf(findings.min, values, count);
  return result;
}

// Widens pieces that stay in the first-level cache.
TensorStatistics OfHalves(const uint16_t* values, uint64_t count, bool squares,
                          void (*widen)(const void*, void*, size_t)) {
  constexpr size_t kPiece = 2048;
  float wide[kPiece];
  widen(values, wide, 1);
  FloatFindings<float> findings{wide[0], wide[0]};
  for (uint64_t i = 0; i < count; i += kPiece) {
    const auto piece = static_cast<size_t>(std::min<uint64_t>(kPiece, count - i));
    widen(values + i, wide, piece);
    PassOverFloats(wide, piece, squares, &findings);
  }
  const auto with_sign = [&](float extreme) {
    const auto is_zero = [](uint16_t bits) { return (bits & 0x7fff) == 0; };
    if (extreme == 0) widen(std::find_if(values, values + count, is_zero), &extreme, 1);
    return static_cast<double>(extreme);
  };
  TensorStatistics result = FromFindings(findings, count);
  result.max = with_sign(findings.max);
  result.min = with_sign(findings.min);
  return result;
}

// Sums of at most 32 bits each are exact; those of 64 bits are added as double.
template <typename T>
TensorStatistics OfIntegers(const T* values, uint64_t count) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  using Sum = std::conditional_t<sizeof(T) == 8, double, Wide>;
  T max = values[0];
  T min = values[0];
  Sum sum = 0;
  double squares = 0;
  for (uint64_t i = 0; i < count; ++i) {
    max = std::max(max, values[i]);
    min = std::min(min, values[i]);
    sum += static_cast<Sum>(values[i]);
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  TensorStatistics result;
  result.count = count;
  result.max = static_cast<Wide>(max);
  result.min = static_cast<Wide>(min);
  result.mean = static_cast<double>(sum) / static_cast<double>(count);
  result.l2norm = std::sqrt(squares);
  return result;
}

}  // namespace

bool HasStatistics(DataType dtype) {
  return IsFloating(dtype) || IsInteger(dtype) || dtype == DataType::kBool;
}

std::optional<TensorStatistics> ComputeStatistics(DataType dtype, const void* data, uint64_t count,
                                                  L2Norm l2norm) {
  if (count == 0) return std::nullopt;
  const bool squares = l2norm == L2Norm::kCompute;
  return VisitStored(
      dtype,
      [&]<typename T>() -> std::optional<TensorStatistics> {
        if constexpr (StoredHalf<T>) {
          const auto widen = std::same_as<T, Float16> ? HalfToFloat : BfloatToFloat;
          return OfHalves(static_cast<const uint16_t*>(data), count, squares, widen);
        } else if constexpr (std::same_as<T, float>) {
          return OfFloats(static_cast<const float*>(data), count, squares);
        } else if constexpr (std::same_as<T, double>) {
          return OfDoubles(static_cast<const double*>(data), count, squares);
        } else {
          return OfIntegers(static_cast<const T*>(data), count);
        }
      },
      []() -> std::optional<TensorStatistics> { return std::nullopt; });
}

}  // namespace npumesh
