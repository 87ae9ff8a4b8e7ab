// Formulas on float, by Highway. Arithmetic is done in float; everything with a transcendental
// function is computed in double by math-inl.h and rounded once, which is both the accuracy we owe
// and half the code of a float version with its range reductions.
//
// The last, partial vector of a block goes through a padded buffer and the same instructions, so
// that an element's bits never depend on where it lies.
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

#include "graph/ops/toolbox/formula/formula.h"
#include "graph/ops/toolbox/values/activations.h"
#include "graph/ops/toolbox/values/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/formula/formula_float.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "graph/ops/toolbox/values/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using DoubleTag = hn::ScalableTag<double>;
using FloatsOfDoubles = hn::Rebind<float, DoubleTag>;

const float* Floats(const void* in) {
  return static_cast<const float*>(in);
}

// Calls f with as many of (d, x, params) or (d, a, b) as it takes, f being without state.
template <class F, class D, class V>
HWY_INLINE V Apply(D d, V x, const FormulaParams& params) {
  if constexpr (std::is_invocable_v<F, D, V>) {
    return F()(d, x);
  } else {
    return F()(d, x, params);
  }
}

// ---- float arithmetic: f(d, x [, params]) and f(d, a, b) -> vector ----

template <class F>
void EachBlock(const void* const* in, void* out, size_t count, const FormulaParams& params) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const float* x = Floats(in[0]);
  float* y = static_cast<float*>(out);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(Apply<F>(d, hn::LoadU(d, x + i), params), d, y + i);
  }
  if (i == count) return;
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(rest, x + i, (count - i) * sizeof(float));
  hn::Store(Apply<F>(d, hn::Load(d, rest), params), d, rest);
  std::memcpy(y + i, rest, (count - i) * sizeof(float));
}

template <class F>
void PairsBlock(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const float* a = Floats(in[0]);
  const float* b = Floats(in[1]);
  float* y = static_cast<float*>(out);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(F()(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  }
  if (i == count) return;
  HWY_ALIGN float rest_a[HWY_MAX_BYTES / sizeof(float)] = {};
  HWY_ALIGN float rest_b[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(rest_a, a + i, (count - i) * sizeof(float));
  std::memcpy(rest_b, b + i, (count - i) * sizeof(float));
  hn::Store(F()(d, hn::Load(d, rest_a), hn::Load(d, rest_b)), d, rest_a);
  std::memcpy(y + i, rest_a, (count - i) * sizeof(float));
}

template <class F>
constexpr BlockFn Each(F) {
  return EachBlock<F>;
}
template <class F>
constexpr BlockFn Pairs(F) {
  return PairsBlock<F>;
}

// ---- comparisons and scalar functions: plain loops, which the compiler vectorises ----

template <class Relation>
void Compare(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const float* a = Floats(in[0]);
  const float* b = Floats(in[1]);
  uint8_t* y = static_cast<uint8_t*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = Relation()(a[i], b[i]);
}

// Highway's own Floor and Ceil lose the sign of -0 on the scalar target.
template <float (*kRound)(float)>
void Round(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const float* x = Floats(in[0]);
  float* y = static_cast<float*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = kRound(x[i]);
}

HWY_INLINE float FloorOf(float x) {
  return std::floor(x);
}
HWY_INLINE float CeilOf(float x) {
  return std::ceil(x);
}

void FloorDiv(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const float* a = Floats(in[0]);
  const float* b = Floats(in[1]);
  float* y = static_cast<float*>(out);
  for (size_t i = 0; i < count; ++i) {
    // The quotient by an infinity of the other sign is below 0, however little.
    const bool below = std::isinf(b[i]) && std::isfinite(a[i]) && a[i] != 0;
    y[i] = below && (a[i] < 0) != (b[i] < 0) ? -1.0f : std::floor(a[i] / b[i]);
  }
}

void FloorMod(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const float* a = Floats(in[0]);
  const float* b = Floats(in[1]);
  float* y = static_cast<float*>(out);
  for (size_t i = 0; i < count; ++i) {
    const float divisor = b[i];
    const float rest = std::fmod(a[i], divisor);
    const float moved = (rest < 0) != (divisor < 0) ? rest + divisor : rest;
    y[i] = rest == 0 ? std::copysign(0.0f, divisor) : moved;
  }
}

struct Square {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Mul(x, x);
  }
};

// ---- in double: f(d, x [, params]) -> vector ----

// Rounds to float; overflow gives infinity on every target.
template <class V>
HWY_INLINE void StoreRounded(V v, float* out) {
  const DoubleTag d;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128  // their DemoteTo saturates
  double lanes[HWY_MAX_BYTES / sizeof(double)];
  hn::StoreU(v, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) out[i] = static_cast<float>(lanes[i]);
#else
  const FloatsOfDoubles df;
  hn::StoreU(hn::DemoteTo(df, v), df, out);
  (void)d;
#endif
}

template <class F>
HWY_INLINE void WideStep(const float* x, float* y, const F& f) {
  const DoubleTag d;
  StoreRounded(f(d, hn::PromoteTo(d, hn::LoadU(FloatsOfDoubles(), x))), y);
}

template <class F>
void WideBlock(const void* const* in, void* out, size_t count, const FormulaParams& params) {
  const F f = [&] {
    if constexpr (std::is_constructible_v<F, const FormulaParams&>) {
      return F(params);  // what the block needs of them, prepared once
    } else {
      return F();
    }
  }();
  const size_t lanes = hn::Lanes(DoubleTag());
  const float* x = Floats(in[0]);
  float* y = static_cast<float*>(out);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) WideStep(x + i, y + i, f);
  if (i == count) return;
  float rest[HWY_MAX_BYTES / sizeof(double)] = {};
  std::memcpy(rest, x + i, (count - i) * sizeof(float));
  WideStep(rest, rest, f);
  std::memcpy(y + i, rest, (count - i) * sizeof(float));
}

template <class F>
constexpr BlockFn Wide(F) {
  return WideBlock<F>;
}

struct Cube {
  template <class D, class V>
  HWY_INLINE V operator()(D /*d*/, V x) const {
    return hn::Mul(hn::Mul(x, x), x);
  }
};

// A cube is rounded once, as Cube rounds it.
float Power(float base, float exponent) {
  const double wide = base;
  if (exponent == 2.0f) return base * base;
  if (exponent == 3.0f) return static_cast<float>(wide * wide * wide);
  return std::pow(base, exponent);
}

bool AreAll(const float* values, size_t count, float wanted) {
  size_t others = 0;
  for (size_t i = 0; i < count; ++i) others += values[i] != wanted;
  return others == 0;
}

// Squares (every RMS norm begins with one) and cubes (Gelu) are by far the most frequent powers,
// and cost next to nothing.
void Pow(const void* const* in, void* out, size_t count, const FormulaParams& params) {
  const float* a = Floats(in[0]);
  const float* b = Floats(in[1]);
  if (AreAll(b, count, 2.0f)) return EachBlock<Square>(in, out, count, params);
  if (AreAll(b, count, 3.0f)) return WideBlock<Cube>(in, out, count, params);
  float* y = static_cast<float*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = Power(a[i], b[i]);
}

// base^(scale x + shift); base -1 is e.
struct ExpOf {
  explicit ExpOf(const FormulaParams& params)
      : factor(params[0] == -1.0f ? 1.0 : std::log(double{params[0]})),
        scale(params[1]),
        shift(params[2]) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V power = hn::Add(hn::Mul(x, hn::Set(d, scale)), hn::Set(d, shift));
    return Exp(d, hn::Mul(power, hn::Set(d, factor)));
  }
  double factor, scale, shift;
};

// Logarithm of scale x + shift to the base.
struct LogOf {
  explicit LogOf(const FormulaParams& params)
      : divisor(params[0] == -1.0f ? 1.0 : std::log(double{params[0]})),
        scale(params[1]),
        shift(params[2]) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V value = hn::Add(hn::Mul(x, hn::Set(d, scale)), hn::Set(d, shift));
    return hn::Div(Log(d, value), hn::Set(d, divisor));
  }
  double divisor, scale, shift;
};

struct SwishOf {
  explicit SwishOf(const FormulaParams& params) : scale(params[0]) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return TimesSigmoid(d, x, hn::Mul(x, hn::Set(d, scale)));
  }
  double scale;
};
struct ErfOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Erf(d, x);
  }
};
// 0.5 x (1 + tanh(u)) = x sigmoid(2u), which does not cancel for negative x.
struct GeluTanhOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V cubic = hn::Add(hn::Set(d, 1.0), hn::Mul(hn::Set(d, kGeluCubic), hn::Mul(x, x)));
    return TimesSigmoid(d, x, hn::Mul(hn::Set(d, 2 * kRootTwoOverPi), hn::Mul(x, cubic)));
  }
};
// 0.5 x (1 + erf(x / sqrt(2))) = 0.5 x erfc(-x / sqrt(2)), for the same reason.
struct GeluErfOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V minus_root_of_half = hn::Set(d, -0x1.6a09e667f3bcdp-1);
    return hn::Mul(hn::Mul(hn::Set(d, 0.5), x), Erfc(d, hn::Mul(x, minus_root_of_half)));
  }
};

// Sine moved by `kQuarters` quarter turns. Angles too large to be reduced here go to the C library,
// which reduces them with as many digits of pi as they need.
template <int64_t kQuarters>
struct AngleOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V near = SinOfQuarters(d, x, kQuarters);
    const auto far = hn::Gt(hn::Abs(x), hn::Set(d, kLargestAngle));
    if (HWY_LIKELY(hn::AllFalse(d, far))) return near;
    HWY_ALIGN double angles[HWY_MAX_BYTES / sizeof(double)];
    HWY_ALIGN double sines[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(x, d, angles);
    hn::Store(near, d, sines);
    for (size_t i = 0; i < hn::Lanes(d); ++i) {
      if (!(std::fabs(angles[i]) > kLargestAngle)) continue;
      sines[i] = kQuarters == 0 ? std::sin(angles[i]) : std::cos(angles[i]);
    }
    return hn::Load(d, sines);
  }
};

// silu(a) b.
HWY_INLINE void SwiGluStep(const float* a, const float* b, float* y) {
  const DoubleTag d;
  const FloatsOfDoubles df;
  const auto gate = hn::PromoteTo(d, hn::LoadU(df, a));
  const auto value = hn::PromoteTo(d, hn::LoadU(df, b));
  StoreRounded(TimesSigmoid(d, hn::Mul(gate, value), gate), y);  // the product is exact
}

void SwiGlu(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(double);
  const size_t lanes = hn::Lanes(DoubleTag());
  const float* a = Floats(in[0]);
  const float* b = Floats(in[1]);
  float* y = static_cast<float*>(out);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) SwiGluStep(a + i, b + i, y + i);
  if (i == count) return;
  float rest_a[kMostLanes] = {};
  float rest_b[kMostLanes] = {};
  std::memcpy(rest_a, a + i, (count - i) * sizeof(float));
  std::memcpy(rest_b, b + i, (count - i) * sizeof(float));
  SwiGluStep(rest_a, rest_b, rest_a);
  std::memcpy(y + i, rest_a, (count - i) * sizeof(float));
}

constexpr FormulaRow kRows[] = {
    {Formula::kAdd, Pairs([](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); })},
    {Formula::kSub, Pairs([](auto, auto a, auto b) HWY_ATTR { return hn::Sub(a, b); })},
    {Formula::kMul, Pairs([](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); })},
    {Formula::kDiv, Pairs([](auto, auto a, auto b) HWY_ATTR { return hn::Div(a, b); })},
    {Formula::kFloorDiv, FloorDiv},
    {Formula::kFloorMod, FloorMod},
    {Formula::kPow, Pow},
    // A NaN on either side wins, and the first one of zeros of both signs.
    {Formula::kMax, Pairs([](auto, auto a, auto b) HWY_ATTR {
       return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b);
     })},
    {Formula::kMin, Pairs([](auto, auto a, auto b) HWY_ATTR {
       return hn::IfThenElse(hn::Or(hn::Le(a, b), hn::IsNaN(a)), a, b);
     })},
    {Formula::kSwiGlu, SwiGlu},
    {Formula::kEqual, Compare<std::equal_to<float>>},
    {Formula::kNotEqual, Compare<std::not_equal_to<float>>},
    {Formula::kLess, Compare<std::less<float>>},
    {Formula::kLessEqual, Compare<std::less_equal<float>>},
    {Formula::kGreater, Compare<std::greater<float>>},
    {Formula::kGreaterEqual, Compare<std::greater_equal<float>>},
    {Formula::kScale, Each([](auto d, auto x, const FormulaParams& params)
                               HWY_ATTR { return hn::Mul(x, hn::Set(d, params[0])); })},
    {Formula::kSqrt, Each([](auto, auto x) HWY_ATTR { return hn::Sqrt(x); })},
    {Formula::kRsqrt,
     Each([](auto d, auto x) HWY_ATTR { return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)); })},
    {Formula::kNeg, Each([](auto, auto x) HWY_ATTR { return hn::Neg(x); })},
    {Formula::kReciprocal,
     Each([](auto d, auto x) HWY_ATTR { return hn::Div(hn::Set(d, 1.0f), x); })},
    {Formula::kAbs, Each([](auto, auto x) HWY_ATTR { return hn::Abs(x); })},
    {Formula::kSquare, Each(Square())},
    // 0 and NaN stay what they are.
    {Formula::kSign, Each([](auto d, auto x) HWY_ATTR {
       const auto has_sign = hn::Gt(hn::Abs(x), hn::Zero(d));
       return hn::IfThenElse(has_sign, hn::CopySign(hn::Set(d, 1.0f), x), x);
     })},
    {Formula::kFloor, Round<FloorOf>},
    {Formula::kCeil, Round<CeilOf>},
    // -0 becomes +0, NaN stays.
    {Formula::kRelu,
     Each([](auto d, auto x) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x); })},
    {Formula::kExp, WideBlock<ExpOf>},
    {Formula::kLog, WideBlock<LogOf>},
    {Formula::kExpm1, Wide([](auto d, auto x) HWY_ATTR { return Expm1(d, x); })},
    {Formula::kLog1p, Wide([](auto d, auto x) HWY_ATTR { return Log1p(d, x); })},
    {Formula::kSin, WideBlock<AngleOf<0>>},
    {Formula::kCos, WideBlock<AngleOf<1>>},
    {Formula::kTanh, Wide([](auto d, auto x) HWY_ATTR { return Tanh(d, x); })},
    {Formula::kErf, WideBlock<ErfOf>},
    {Formula::kSigmoid, Wide([](auto d, auto x) HWY_ATTR { return Sigmoid(d, x); })},
    {Formula::kSwish, WideBlock<SwishOf>},
    {Formula::kGeluTanh, WideBlock<GeluTanhOf>},
    {Formula::kGeluErf, WideBlock<GeluErfOf>},
    {Formula::kFastGelu, Wide([](auto d, auto x) HWY_ATTR {
       return TimesSigmoid(d, x, hn::Mul(x, hn::Set(d, kFastGeluScale)));
     })},
};

BlockFn FloatBlock(Formula formula) {
  return FindBlock(kRows, formula);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(FloatBlock);

BlockFn FloatBlock(Formula formula) {
  return HWY_DYNAMIC_DISPATCH(FloatBlock)(formula);
}

}  // namespace npumesh
#endif  // HWY_ONCE
