#include "graph/ops/reduce/reduce_ops_fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "graph/ops/toolbox/lanes/lane_table.h"

namespace npumesh {
namespace {

template <typename T>
bool IsBelowZero(T a) {
  if constexpr (std::is_floating_point_v<T>) return std::signbit(a);
  return false;
}
template <typename T>
struct Max {
  T operator()(T a, T b) const { return a > b || a != a || (a == b && !IsBelowZero(a)) ? a : b; }
};
template <typename T>
struct Min {
  T operator()(T a, T b) const { return a < b || a != a || (a == b && IsBelowZero(a)) ? a : b; }
};

template <typename T>
void Fill(uint64_t identity, void* totals, size_t count) {
  T value;
  std::memcpy(&value, &identity, sizeof(T));
  std::fill_n(static_cast<T*>(totals), count, value);
}

// Eight independent accumulators, joined as a tree: fast, and rounded less often than a chain.
template <typename T, typename Join>
void Row(const void* values, size_t count, void* total) {
  constexpr size_t kLanes = 8;
  const T* x = static_cast<const T*>(values);
  T* sum = static_cast<T*>(total);
  size_t i = 0;
  if (count >= kLanes) {
    T lane[kLanes];
    std::copy_n(x, kLanes, lane);
    for (i = kLanes; i + kLanes <= count; i += kLanes) {
      for (size_t k = 0; k < kLanes; ++k) lane[k] = Join()(lane[k], x[i + k]);
    }
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
      for (size_t k = 0; k < half; ++k) lane[k] = Join()(lane[k], lane[k + half]);
    }
    *sum = Join()(*sum, lane[0]);
  }
  for (; i < count; ++i) *sum = Join()(*sum, x[i]);
}

// As static kernels fold.
template <LoopOp kOp, typename T>
void RowByLanes(const void* values, size_t count, void* total) {
  if (count == 0) return;
  T* const sum = static_cast<T*>(total);
  RowGathered row{.total = *sum};
  FindJoin(kOp, std::is_same_v<T, float> ? LoopType::kFloat : LoopType::kDouble)
      ->join(values, count, row);
  *sum = static_cast<T>(row.total);
}

// The totals stay in registers.
template <size_t kCount, typename T, typename Join>
void FewColumns(const T* x, size_t rows, T* totals) {
  T sum[kCount];
  std::copy_n(totals, kCount, sum);
  for (; rows > 0; --rows, x += kCount) {
    for (size_t i = 0; i < kCount; ++i) sum[i] = Join()(sum[i], x[i]);
  }
  std::copy_n(sum, kCount, totals);
}

template <typename T, typename Join>
void Columns(const void* values, size_t rows, size_t count, void* totals) {
  const T* x = static_cast<const T*>(values);
  T* sum = static_cast<T*>(totals);
  if (count == 16) return FewColumns<16, T, Join>(x, rows, sum);  // blocks of channels
  if (count == 8) return FewColumns<8, T, Join>(x, rows, sum);
  for (; rows > 0; --rows, x += count) {
    for (size_t i = 0; i < count; ++i) sum[i] = Join()(sum[i], x[i]);
  }
}

template <typename T>
void Divide(void* totals, size_t count, int64_t divisor) {
  T* sum = static_cast<T*>(totals);
  const bool undefined = std::numeric_limits<T>::is_integer && divisor == 0;
  for (size_t i = 0; i < count; ++i) sum[i] = undefined ? T(0) : sum[i] / static_cast<T>(divisor);
}

template <typename T, typename Join>
Fold Make(DataType compute, T identity) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, &identity, sizeof(T));
  return {compute, bytes, Fill<T>, Row<T, Join>, Columns<T, Join>, nullptr};
}

template <typename T>
Fold FloatFold(FoldKind kind, DataType compute) {
  const bool product = kind == FoldKind::kProd;
  Fold fold =
      product ? Make<T, std::multiplies<>>(compute, T(1)) : Make<T, std::plus<>>(compute, T(0));
  if (std::is_same_v<T, double>) {
    fold.row = product ? RowByLanes<LoopOp::kRowProduct, T> : RowByLanes<LoopOp::kRowTotal, T>;
  }
  if (kind == FoldKind::kMean) fold.divide = Divide<T>;
  return fold;
}

// Sums and products of integers wrap, which only unsigned ones may do. A mean is a sum that is
// divided.
std::optional<Fold> SumOrProduct(FoldKind kind, DataType dtype, bool fast) {
  const bool product = kind == FoldKind::kProd, mean = kind == FoldKind::kMean;
  if (IsFloating(dtype)) {
    return fast && dtype != DataType::kDouble ? FloatFold<float>(kind, DataType::kFloat)
                                              : FloatFold<double>(kind, DataType::kDouble);
  }
  if (!IsInteger(dtype)) return std::nullopt;
  const bool is_signed = dtype != DataType::kUint64;
  const DataType compute = is_signed ? DataType::kInt64 : DataType::kUint64;
  Fold fold = product ? Make<uint64_t, std::multiplies<>>(compute, 1)
                      : Make<uint64_t, std::plus<>>(compute, 0);
  if (mean) fold.divide = is_signed ? Divide<int64_t> : Divide<uint64_t>;
  return fold;
}

template <typename T>
Fold Extreme(FoldKind kind, DataType compute, T least, T greatest) {
  return kind == FoldKind::kMax ? Make<T, Max<T>>(compute, least)
                                : Make<T, Min<T>>(compute, greatest);
}

template <typename T>
Fold FloatExtreme(FoldKind kind, DataType compute) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  Fold fold = Extreme<T>(kind, compute, -kInfinity, kInfinity);
  fold.row = kind == FoldKind::kMax ? RowByLanes<LoopOp::kRowLargest, T>
                                    : RowByLanes<LoopOp::kRowLeast, T>;
  return fold;
}

// The identity is the least or greatest value of the tensor's own type, not of the accumulator's.
std::optional<Fold> MaxOrMin(FoldKind kind, DataType dtype) {
  if (dtype == DataType::kDouble) return FloatExtreme<double>(kind, DataType::kDouble);
  if (IsFloating(dtype)) return FloatExtreme<float>(kind, DataType::kFloat);
  const int bits = BitsOf(dtype);
  if (IsSignedInteger(dtype)) {
    const int64_t greatest = std::numeric_limits<int64_t>::max() >> (64 - bits);
    return Extreme<int64_t>(kind, DataType::kInt64, -greatest - 1, greatest);
  }
  if (IsUnsignedInteger(dtype)) {
    const uint64_t greatest = std::numeric_limits<uint64_t>::max() >> (64 - bits);
    return Extreme<uint64_t>(kind, DataType::kUint64, 0, greatest);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Fold> FindFold(FoldKind kind, DataType dtype, bool fast) {
  if (kind == FoldKind::kMax || kind == FoldKind::kMin) return MaxOrMin(kind, dtype);
  if (kind != FoldKind::kAny && kind != FoldKind::kAll) return SumOrProduct(kind, dtype, fast);
  if (!IsFloating(dtype) && !IsInteger(dtype) && dtype != DataType::kBool) return std::nullopt;
  return kind == FoldKind::kAny ? Make<uint8_t, Max<uint8_t>>(DataType::kBool, 0)
                                : Make<uint8_t, Min<uint8_t>>(DataType::kBool, 1);
}

}  // namespace npumesh
