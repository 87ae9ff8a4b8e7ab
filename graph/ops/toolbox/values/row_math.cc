// By Highway; no fused multiply-add, so that every target gives the same bits. The last, partial
// vector of a row goes through a padded buffer and the same instructions.
#include "graph/ops/toolbox/values/row_math.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/values/row_math.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After Highway.
#include "graph/ops/toolbox/values/half_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// BlockedSum adds up in this many lanes, which several vectors share on smaller processors.
constexpr size_t kSumLanes = 16;
constexpr size_t kSumBlock = kSumLanes * 64;
using SumTag = hn::CappedTag<float, kSumLanes>;
using RowTag = hn::ScalableTag<float>;

// `count` elements, fewer than a vector has, and `filler` after them.
template <class D>
HWY_INLINE hn::Vec<D> LoadRest(D d, const float* x, size_t count, float filler) {
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
  std::fill_n(rest, hn::Lanes(d), filler);
  std::memcpy(rest, x, count * sizeof(float));
  return hn::Load(d, rest);
}

template <class D>
HWY_INLINE void StoreRest(D d, hn::Vec<D> v, float* y, size_t count) {
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, rest);
  std::memcpy(y, rest, count * sizeof(float));
}

// y[i] = function(x[i], b[i]) in vectors; `b` may be `x` for functions of one row.
template <class Function>
HWY_INLINE void EachOfRow(const float* x, const float* b, size_t count, float* y,
                          const Function& function) {
  const RowTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(function(hn::LoadU(d, x + i), hn::LoadU(d, b + i)), d, y + i);
  }
  if (i == count) return;
  const auto rest = function(LoadRest(d, x + i, count - i, 0), LoadRest(d, b + i, count - i, 0));
  StoreRest(d, rest, y + i, count - i);
}

float Largest(const float* x, int64_t elements) {
  const RowTag d;
  const float least = -std::numeric_limits<float>::infinity();
  const auto count = static_cast<size_t>(elements);
  const size_t lanes = hn::Lanes(d);
  auto most = hn::Set(d, least);
  const auto raise = [&most](auto v) { most = hn::IfThenElse(hn::Lt(most, v), v, most); };
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) raise(hn::LoadU(d, x + i));
  if (i < count) raise(LoadRest(d, x + i, count - i, least));
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// Lanes [lane, lane + vector) of the sum over [begin, end), which has at most kSumBlock elements.
template <class Function>
HWY_INLINE hn::Vec<SumTag> SumOfLanes(const float* x, size_t begin, size_t end, size_t lane,
                                      const Function& function) {
  const SumTag d;
  auto sum = hn::Zero(d);
  size_t i = begin + lane;
  for (; i + hn::Lanes(d) <= end; i += kSumLanes) {
    sum = hn::Add(sum, function(hn::LoadU(d, x + i)));
  }
  if (i < end) sum = hn::Add(sum, function(LoadRest(d, x + i, end - i, 0)));
  return sum;
}

template <class Function>
HWY_INLINE double SumInBlocks(const float* x, size_t count, const Function& function) {
  const SumTag d;
  double total = 0;
  for (size_t begin = 0; begin < count; begin += kSumBlock) {
    const size_t end = std::min(begin + kSumBlock, count);
    HWY_ALIGN float lanes[kSumLanes];
    for (size_t lane = 0; lane < kSumLanes; lane += hn::Lanes(d)) {
      hn::Store(SumOfLanes(x, begin, end, lane, function), d, lanes + lane);
    }
    for (const float lane : lanes) total += static_cast<double>(lane);
  }
  return total;
}

double Sum(const float* x, int64_t count) {
  return SumInBlocks(x, static_cast<size_t>(count), [](auto v) { return v; });
}

double Squares(const float* x, int64_t count) {
  return SumInBlocks(x, static_cast<size_t>(count), [](auto v) { return hn::Mul(v, v); });
}

// The operations of ExpOfNonPositive, one by one, but without its underflow where the result is 0:
// it is slow, and masked scores are full of it.
template <class V>
HWY_INLINE V Exponential(V x) {
  const RowTag d;
  const hn::RebindToSigned<RowTag> di;
  const auto rounder = hn::Set(d, 0x1.8p23f);
  const auto vanishes = hn::Lt(x, hn::Set(d, -104.0f));
  x = hn::IfThenZeroElse(vanishes, x);
  const V shifted = hn::Add(hn::Mul(x, hn::Set(d, 0x1.715476p+0f)), rounder);
  const V k = hn::Sub(shifted, rounder);
  const V r = hn::Sub(hn::Sub(x, hn::Mul(k, hn::Set(d, 0x1.62ep-1f))),
                      hn::Mul(k, hn::Set(d, 0x1.0bfbe8p-15f)));
  V p = hn::Set(d, 1.0f / 5040);
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 1.0f / 720));
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 1.0f / 120));
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 1.0f / 24));
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 1.0f / 6));
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 0.5f));
  p = hn::Add(hn::Add(hn::Mul(hn::Mul(p, r), r), r), hn::Set(d, 1.0f));
  const auto exponent = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, rounder));
  const auto half = hn::ShiftRight<1>(exponent);
  const auto bias = hn::Set(di, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(exponent, half), bias)));
  return hn::IfThenZeroElse(vanishes, hn::Mul(hn::Mul(p, first), second));
}

void Exponentials(const float* x, float most, int64_t count, float* y) {
  const auto shift = hn::Set(RowTag(), most);
  EachOfRow(x, x, static_cast<size_t>(count), y,
            [shift](auto v, auto) { return Exponential(hn::Sub(v, shift)); });
}

void Shifted(const float* x, float summand, int64_t count, float* y) {
  const auto shift = hn::Set(RowTag(), summand);
  EachOfRow(x, x, static_cast<size_t>(count), y,
            [shift](auto v, auto) { return hn::Add(v, shift); });
}

void Scaled(const float* x, float factor, int64_t count, float* y) {
  const auto scale = hn::Set(RowTag(), factor);
  EachOfRow(x, x, static_cast<size_t>(count), y,
            [scale](auto v, auto) { return hn::Mul(v, scale); });
}

void Multiplied(const float* x, const float* factors, int64_t count, float* y) {
  EachOfRow(x, factors, static_cast<size_t>(count), y,
            [](auto v, auto factor) { return hn::Mul(v, factor); });
}

template <class Half>
HWY_INLINE void WidenRow(const uint16_t* x, size_t count, float* y) {
  const RowTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(WideHalves<Half>(d, x + i), d, y + i);
  if (i == count) return;
  uint16_t rest[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(rest, x + i, (count - i) * sizeof(uint16_t));
  StoreRest(d, WideHalves<Half>(d, rest), y + i, count - i);
}

template <class Half>
void WidenEach(const HalfRows& rows, float* to, int64_t to_stride) {
  constexpr int64_t kAhead = 32, kLine = 64 / sizeof(uint16_t);
  const auto* row = static_cast<const uint16_t*>(rows.data);
  for (int64_t i = 0; i < rows.count; ++i, row += rows.stride, to += to_stride) {
    const uint16_t* const later = row + kAhead * rows.stride;
    for (int64_t at = 0; at < rows.width; at += kLine) __builtin_prefetch(later + at);
    WidenRow<Half>(row, static_cast<size_t>(rows.width), to);
  }
}

void Widened(const HalfRows& rows, float* to, int64_t to_stride) {
  rows.dtype == DataType::kFloat16 ? WidenEach<hwy::float16_t>(rows, to, to_stride)
                                   : WidenEach<hwy::bfloat16_t>(rows, to, to_stride);
}

void Added(const float* x, const float* summands, int64_t count, float* y) {
  EachOfRow(x, summands, static_cast<size_t>(count), y,
            [](auto v, auto summand) { return hn::Add(v, summand); });
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(Largest);
HWY_EXPORT(Sum);
HWY_EXPORT(Squares);
HWY_EXPORT(Exponentials);
HWY_EXPORT(Shifted);
HWY_EXPORT(Scaled);
HWY_EXPORT(Multiplied);
HWY_EXPORT(Added);
HWY_EXPORT(Widened);

float LargestInRow(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(Largest)(x, count);
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
