#include "graph/dump/float_pass.h"

#include <cmath>

#include "graph/ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/dump/float_pass.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;

// Sums of values and of their squares, in double.
struct Sums {
  hn::Vec<Doubles> values;
  hn::Vec<Doubles> squares;

  HWY_INLINE void Add(hn::Vec<Doubles> v) {
    values = hn::Add(values, v);
    squares = hn::Add(squares, hn::Mul(v, v));
  }
};

// A vector of floats is two of doubles, which are summed apart.
HWY_INLINE void AddTo(Sums (&sums)[2], hn::Vec<hn::ScalableTag<float>> v) {
#if HWY_TARGET == HWY_SCALAR  // a vector is one element there
  sums[0].Add(hn::PromoteTo(Doubles(), v));
#else
  const hn::Half<hn::ScalableTag<float>> half;
  sums[0].Add(hn::PromoteTo(Doubles(), hn::LowerHalf(half, v)));
  sums[1].Add(hn::PromoteTo(Doubles(), hn::UpperHalf(half, v)));
#endif
}

HWY_INLINE void AddTo(Sums (&sums)[2], hn::Vec<Doubles> v) {
  sums[0].Add(v);
}

template <typename T>
void PassOverOne(T value, FloatFindings<T>* findings) {
  if (value > findings->max) findings->max = value;
  if (value < findings->min) findings->min = value;
  findings->sum += static_cast<double>(value);
  findings->squares += static_cast<double>(value) * static_cast<double>(value);
  if (std::isnan(value)) ++findings->nans;
  if (std::isinf(value))
    ++(value < 0 ? findings->negative_infinities : findings->positive_infinities);
}

template <typename T>
void Pass(const T* values, size_t count, FloatFindings<T>* findings) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto infinity = hn::Inf(d);
  auto max = hn::Set(d, findings->max);
  auto min = hn::Set(d, findings->min);
  const auto zero = hn::Zero(Doubles());
  Sums sums[2] = {{zero, zero}, {zero, zero}};
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, values + i);
    // Comparisons with a NaN are false, so it replaces nothing.
    max = hn::IfThenElse(hn::Gt(v, max), v, max);
    min = hn::IfThenElse(hn::Lt(v, min), v, min);
    AddTo(sums, v);
    if (hn::AllTrue(d, hn::Lt(hn::Abs(v), infinity))) continue;
    findings->nans += hn::CountTrue(d, hn::IsNaN(v));
    findings->positive_infinities += hn::CountTrue(d, hn::Eq(v, infinity));
    findings->negative_infinities += hn::CountTrue(d, hn::Eq(v, hn::Neg(infinity)));
  }
  const Doubles dd;
  findings->sum += hn::GetLane(hn::SumOfLanes(dd, hn::Add(sums[0].values, sums[1].values)));
  findings->squares += hn::GetLane(hn::SumOfLanes(dd, hn::Add(sums[0].squares, sums[1].squares)));
  HWY_ALIGN T high[HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T low[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(max, d, high);
  hn::Store(min, d, low);
  for (size_t lane = 0; lane < lanes; ++lane) {
    if (high[lane] > findings->max) findings->max = high[lane];
    if (low[lane] < findings->min) findings->min = low[lane];
  }
  for (; i < count; ++i) PassOverOne(values[i], findings);
}

void FloatPass(const float* values, size_t count, FloatFindings<float>* findings) {
  Pass(values, count, findings);
}
void DoublePass(const double* values, size_t count, FloatFindings<double>* findings) {
  Pass(values, count, findings);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(FloatPass);
HWY_EXPORT(DoublePass);

void PassOverFloats(const float* values, size_t count, FloatFindings<float>* findings) {
  HWY_DYNAMIC_DISPATCH(FloatPass)(values, count, findings);
}
void PassOverDoubles(const double* values, size_t count, FloatFindings<double>* findings) {
  HWY_DYNAMIC_DISPATCH(DoublePass)(values, count, findings);
}

}  // namespace npumesh
#endif  // HWY_ONCE
