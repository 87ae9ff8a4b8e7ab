#include "graph/ops/reduce/reduce_ops_fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "graph/ops/toolbox/values/fold_row.h"

namespace npumesh {
namespace {

template <typename T>
void Fill(uint64_t identity, void* totals, size_t count) {
  T value;
  std::memcpy(&value, &identity, sizeof(T));
  std::fill_n(static_cast<T*>(totals), count, value);
}

template <typename T, typename Join>
void Row(const void* values, size_t count, void* total) {
  T* sum = static_cast<T*>(total);
  if (count > 0) *sum = JoinBlock<Join>(*sum, static_cast<const T*>(values), count);
}

template <typename T, typename Join>
void Columns(const void* values, size_t count, void* totals) {
  const T* x = static_cast<const T*>(values);
  T* sum = static_cast<T*>(totals);
  for (size_t i = 0; i < count; ++i) sum[i] = Join()(sum[i], x[i]);
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
  Fold fold = kind == FoldKind::kProd ? Make<T, std::multiplies<>>(compute, T(1))
                                      : Make<T, std::plus<>>(compute, T(0));
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
  return kind == FoldKind::kMax ? Make<T, LargerOf<T>>(compute, least)
                                : Make<T, SmallerOf<T>>(compute, greatest);
}

// The identity is the least or greatest value of the tensor's own type, not of the accumulator's.
std::optional<Fold> MaxOrMin(FoldKind kind, DataType dtype) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (dtype == DataType::kDouble) {
    return Extreme<double>(kind, DataType::kDouble, -kInfinity, kInfinity);
  }
  if (IsFloating(dtype)) return Extreme<float>(kind, DataType::kFloat, -kInfinity, kInfinity);
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
  return kind == FoldKind::kAny ? Make<uint8_t, LargerOf<uint8_t>>(DataType::kBool, 0)
                                : Make<uint8_t, SmallerOf<uint8_t>>(DataType::kBool, 1);
}

}  // namespace npumesh
