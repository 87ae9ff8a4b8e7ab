// By the lanes: every target gives the same bits. The last, partial vector of a row goes through
// the same instructions.
#include "graph/ops/toolbox/values/row_math.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/values/row_math.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After Highway.
#include "graph/ops/toolbox/lanes/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {

constexpr int64_t kSumBlock = 16 * 64;  // as BlockedSum of row_io.h

// y[i] = function(x[i], b[i]); `b` may be `x` for functions of one row.
template <class Function>
NM_INLINE void EachOfRow(const float* x, const float* b, int64_t count, float* y,
                         const Function& function) {
  int64_t i = 0;
  for (; i + NM_WIDTH <= count; i += NM_WIDTH) {
    StoreFloat(function(LoadFloat(x + i), LoadFloat(b + i)), y + i);
  }
  if (i == count) return;
  const int rest = static_cast<int>(count - i);
  const F last = function(LoadPart(LoadFloat, x + i, rest), LoadPart(LoadFloat, b + i, rest));
  StorePart(StoreFloat, last, y + i, rest);
}

float LargestOf(const float* x, int64_t count) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  F most = Set(kLeast);
  int64_t i = 0;
  for (; i + NM_WIDTH <= count; i += NM_WIDTH) Raise(most, LoadFloat(x + i));
  const int rest = static_cast<int>(count - i);
  if (rest > 0) Raise(most, FirstLanes(LoadPart(LoadFloat, x + i, rest), rest, kLeast));
  return LargestLane(most).v[0][0];
}

template <class Function>
NM_INLINE double SumInBlocks(const float* x, int64_t count, const Function& function) {
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kSumBlock) {
    const int64_t end = std::min(begin + kSumBlock, count);
    S lanes = {};
    int64_t i = begin;
    for (; i + NM_WIDTH <= end; i += NM_WIDTH) AddLanes(lanes, function(LoadFloat(x + i)));
    const int rest = static_cast<int>(end - i);
    if (rest > 0) AddLanes(lanes, function(LoadPart(LoadFloat, x + i, rest)));
    Empty(lanes, total);
  }
  return total;
}

double Sum(const float* x, int64_t count) {
  return SumInBlocks(x, count, [](F v) HWY_ATTR { return v; });
}

double Squares(const float* x, int64_t count) {
  return SumInBlocks(x, count, [](F v) HWY_ATTR { return Square(v); });
}

void Exponentials(const float* x, float most, int64_t count, float* y) {
  const F shift = Set(most);
  EachOfRow(x, x, count, y, [&](F v, F) HWY_ATTR { return ExpOfNonPositive(Sub(v, shift)); });
}

void Shifted(const float* x, float summand, int64_t count, float* y) {
  const F shift = Set(summand);
  EachOfRow(x, x, count, y, [&](F v, F) HWY_ATTR { return Add(v, shift); });
}

void Scaled(const float* x, float factor, int64_t count, float* y) {
  const F scale = Set(factor);
  EachOfRow(x, x, count, y, [&](F v, F) HWY_ATTR { return Mul(v, scale); });
}

void Multiplied(const float* x, const float* factors, int64_t count, float* y) {
  EachOfRow(x, factors, count, y, [](F v, F factor) HWY_ATTR { return Mul(v, factor); });
}

void Added(const float* x, const float* summands, int64_t count, float* y) {
  EachOfRow(x, summands, count, y, [](F v, F summand) HWY_ATTR { return Add(v, summand); });
}

template <F (*kLoad)(const unsigned short*)>
NM_INLINE void WidenRow(const uint16_t* x, int64_t count, float* y) {
  int64_t i = 0;
  for (; i + NM_WIDTH <= count; i += NM_WIDTH) StoreFloat(kLoad(x + i), y + i);
  const int rest = static_cast<int>(count - i);
  if (rest > 0) StorePart(StoreFloat, LoadPart(kLoad, x + i, rest), y + i, rest);
}

template <F (*kLoad)(const unsigned short*)>
void WidenEach(const HalfRows& rows, float* to, int64_t to_stride) {
  constexpr int64_t kAhead = 32, kLine = 64 / sizeof(uint16_t);
  const auto* row = static_cast<const uint16_t*>(rows.data);
  for (int64_t i = 0; i < rows.count; ++i, row += rows.stride, to += to_stride) {
    const uint16_t* const later = row + kAhead * rows.stride;
    for (int64_t at = 0; at < rows.width; at += kLine) __builtin_prefetch(later + at);
    WidenRow<kLoad>(row, rows.width, to);
  }
}

void Widened(const HalfRows& rows, float* to, int64_t to_stride) {
  rows.dtype == DataType::kFloat16 ? WidenEach<LoadHalf>(rows, to, to_stride)
                                   : WidenEach<LoadBfloat>(rows, to, to_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(LargestOf);
HWY_EXPORT(Sum);
HWY_EXPORT(Squares);
HWY_EXPORT(Exponentials);
HWY_EXPORT(Shifted);
HWY_EXPORT(Scaled);
HWY_EXPORT(Multiplied);
HWY_EXPORT(Added);
HWY_EXPORT(Widened);

float LargestInRow(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(LargestOf)(x, count);
}

double SumOfRow(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(Sum)(x, count);
}

double SumOfSquares(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(Squares)(x, count);
}

void ExponentialsOfRow(const float* x, float most, int64_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(Exponentials)(x, most, count, y);
}

void ShiftRow(const float* x, float summand, int64_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(Shifted)(x, summand, count, y);
}

void ScaleRow(const float* x, float factor, int64_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(Scaled)(x, factor, count, y);
}

void MultiplyRow(const float* x, const float* factors, int64_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(Multiplied)(x, factors, count, y);
}

void AddRow(const float* x, const float* summands, int64_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(Added)(x, summands, count, y);
}

void WidenRows(const HalfRows& rows, float* to, int64_t to_stride) {
  HWY_DYNAMIC_DISPATCH(Widened)(rows, to, to_stride);
}

void SoftmaxRow(const float* x, int64_t count, float* y) {
  ExponentialsOfRow(x, LargestInRow(x, count), count, y);
  ScaleRow(y, static_cast<float>(1.0 / SumOfRow(y, count)), count, y);
}

}  // namespace npumesh
#endif  // HWY_ONCE
