#include "graph/dump/statistics/float_pass.h"

#include <cmath>

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/dump/statistics/float_pass.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;

// Sums of values, and of their squares if `kSquares`, in double.
template <bool kSquares>
struct Sums {
  hn::Vec<Doubles> values = hn::Zero(Doubles());
  hn::Vec<Doubles> squares = hn::Zero(Doubles());

  HWY_INLINE void Add(hn::Vec<Doubles> v) {
    values = hn::Add(values, v);
    if constexpr (kSquares) squares = hn::MulAdd(v, v, squares);
  }
};

// What one of several interleaved streams of vectors has found: one alone would wait for itself,
// four cycles an addition.
template <typename T, bool kSquares>
struct Stream {
  hn::Vec<hn::ScalableTag<T>> max;
  hn::Vec<hn::ScalableTag<T>> min;
  Sums<kSquares> low;  // a vector of floats is two of doubles
  Sums<kSquares> high;

  HWY_INLINE void Add(hn::Vec<hn::ScalableTag<T>> v) {
    // Comparisons with a NaN are false, so it replaces nothing.
    max = hn::IfThenElse(hn::Gt(v, max), v, max);
    min = hn::IfThenElse(hn::Lt(v, min), v, min);
    if constexpr (sizeof(T) == sizeof(double)) {
      low.Add(v);
    } else {
#if HWY_TARGET == HWY_SCALAR  // a vector is one element there
      low.Add(hn::PromoteTo(Doubles(), v));
#else
      const hn::Half<hn::ScalableTag<T>> half;
      low.Add(hn::PromoteTo(Doubles(), hn::LowerHalf(half, v)));
      high.Add(hn::PromoteTo(Doubles(), hn::UpperHalf(half, v)));
#endif
    }
  }
};

template <typename T>
HWY_INLINE void CountSpecials(hn::Vec<hn::ScalableTag<T>> v, FloatFindings<T>* findings) {
  const hn::ScalableTag<T> d;
  const auto infinity = hn::Inf(d);
  findings->nans += hn::CountTrue(d, hn::IsNaN(v));
  findings->positive_infinities += hn::CountTrue(d, hn::Eq(v, infinity));
  findings->negative_infinities += hn::CountTrue(d, hn::Eq(v, hn::Neg(infinity)));
}

template <bool kSquares, typename T>
void PassOverOne(T value, FloatFindings<T>* findings) {
  if (value > findings->max) findings->max = value;
  if (value < findings->min) findings->min = value;
  findings->sum += static_cast<double>(value);
  if (kSquares) findings->squares += static_cast<double>(value) * static_cast<double>(value);
  if (std::isnan(value)) ++findings->nans;
  if (std::isinf(value))
    ++(value < 0 ? findings->negative_infinities : findings->positive_infinities);
}

template <typename T, bool kSquares>
void Join(const Stream<T, kSquares>& stream, FloatFindings<T>* findings) {
  const hn::ScalableTag<T> d;
  const Doubles dd;
  findings->sum += hn::GetLane(hn::SumOfLanes(dd, hn::Add(stream.low.values, stream.high.values)));
  findings->squares +=
      hn::GetLane(hn::SumOfLanes(dd, hn::Add(stream.low.squares, stream.high.squares)));
  HWY_ALIGN T high[HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T low[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(stream.max, d, high);
  hn::Store(stream.min, d, low);
  for (size_t lane = 0; lane < hn::Lanes(d); ++lane) {
    if (high[lane] > findings->max) findings->max = high[lane];
    if (low[lane] < findings->min) findings->min = low[lane];
  }
}

template <typename T, bool kSquares>
void Pass(const T* values, size_t count, FloatFindings<T>* findings) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto infinity = hn::Inf(d);
  Stream<T, kSquares> even{hn::Set(d, findings->max), hn::Set(d, findings->min), {}, {}};
  Stream<T, kSquares> odd = even;
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto a = hn::LoadU(d, values + i);
    const auto b = hn::LoadU(d, values + i + lanes);
    even.Add(a);
    odd.Add(b);
    const auto finite = hn::And(hn::Lt(hn::Abs(a), infinity), hn::Lt(hn::Abs(b), infinity));
    if (HWY_LIKELY(hn::AllTrue(d, finite))) continue;
    CountSpecials(a, findings);
    CountSpecials(b, findings);
  }
  Join(even, findings);
  Join(odd, findings);
  for (; i < count; ++i) PassOverOne<kSquares>(values[i], findings);
}

void FloatPass(const float* values, size_t count, bool with_squares,
               FloatFindings<float>* findings) {
  with_squares ? Pass<float, true>(values, count, findings)
               : Pass<float, false>(values, count, findings);
}
void DoublePass(const double* values, size_t count, bool with_squares,
                FloatFindings<double>* findings) {
  with_squares ? Pass<double, true>(values, count, findings)
               : Pass<double, false>(values, count, findings);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(FloatPass);
HWY_EXPORT(DoublePass);

void PassOverFloats(const float* values, size_t count, bool with_squares,
                    FloatFindings<float>* findings) {
  HWY_DYNAMIC_DISPATCH(FloatPass)(values, count, with_squares, findings);
}
void PassOverDoubles(const double* values, size_t count, bool with_squares,
                     FloatFindings<double>* findings) {
  HWY_DYNAMIC_DISPATCH(DoublePass)(values, count, with_squares, findings);
}

}  // namespace npumesh
#endif  // HWY_ONCE
