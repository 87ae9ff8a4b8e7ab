// Elementary functions on vectors of double, for kernels whose results are float.
//
// All are good to about 40 bits over the whole range that a float argument can reach, so one
// rounding to float at the end of a formula, however composed, is the correct one almost always
// (asked for: 2 units in the last place). No fused multiply-add and no
// approximate instruction is used: every target gives the same bits.
//
// The polynomials stand in polynomials.h.
//
// Included once for each Highway target; REQUIRES: hwy/highway.h is included first.
#if defined(NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_MATH_INL_H_
#undef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_MATH_INL_H_
#else
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_MATH_INL_H_
#endif

#include <cstddef>
#include <limits>

#include "graph/ops/toolbox/values/polynomials.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adding and subtracting it rounds a double below 2^51 to an integer, which then also stands in the
// low bits of the sum.
inline constexpr double kRounder = 0x1.8p52;

// c[0] + c[1] x + c[2] x^2 + ...
template <class D, class V, size_t kTerms>
HWY_INLINE V Polynomial(D d, V x, const double (&c)[kTerms]) {
  V sum = hn::Set(d, c[kTerms - 1]);
  for (size_t i = kTerms - 1; i-- > 0;) sum = hn::Add(hn::Mul(sum, x), hn::Set(d, c[i]));
  return sum;
}

// x between `low` and `high`; NaN stays.
template <class V>
HWY_INLINE V Between(V low, V x, V high) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE2
  return hn::Min(high, hn::Max(low, x));  // the instructions return their second operand beside NaN
#else
  const V raised = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Gt(raised, high), high, raised);
#endif
}

// e^x = 2^k e^r with |r| <= ln(2) / 2; inf above 709.5 and 0 below -708.7, far outside float: there
// 2^k has no bits in its fraction, and the exponent of an infinity or of zero.
//
// For floats that have an exponential k ln(2) is below 128, so its error is below 2^-46.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  constexpr double kBiasedRounder = kRounder + 1023;  // leaves the exponent of 2^k in the low bits
  const hn::RebindToSigned<D> di;
  const V bounded = Between(hn::Set(d, -709.1), x, hn::Set(d, 709.9));
  const V shifted =
      hn::Add(hn::Mul(bounded, hn::Set(d, 0x1.71547652b82fep+0)), hn::Set(d, kBiasedRounder));
  const V k = hn::Sub(shifted, hn::Set(d, kBiasedRounder));
  const V r = hn::Sub(bounded, hn::Mul(k, hn::Set(d, 0x1.62e42fefa39efp-1)));
  const V power = hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(di, shifted)));
  const V square = hn::Mul(r, r);
  const V odd = hn::Mul(r, Polynomial(d, square, kExpOddTerms));
  return hn::Mul(hn::Add(Polynomial(d, square, kExpEvenTerms), odd), power);
}

// e^x - 1.
template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  const V small = hn::Mul(x, Polynomial(d, x, kExpm1Terms));
  const V large = hn::Sub(Exp(d, x), hn::Set(d, 1.0));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-14)), small, large);
}

// ln(x) = k ln(2) + 2 atanh((m - 1) / (m + 1)) with x = 2^k m and m in [sqrt(1/2), sqrt(2)).
// REQUIRES: x is not subnormal as a double; no float is.
template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  constexpr uint64_t kOne = 0x3ff0000000000000;
  constexpr uint64_t kRootOfHalf = 0x3fe6a09e667f3bcd;
  const hn::RebindToUnsigned<D> du;
  const auto raised = hn::Add(hn::BitCast(du, x), hn::Set(du, kOne - kRootOfHalf));
  const auto fraction = hn::And(raised, hn::Set(du, uint64_t{0x000fffffffffffff}));
  const V m = hn::BitCast(d, hn::Add(fraction, hn::Set(du, kRootOfHalf)));
  // The biased exponent as a double: in the low bits of 2^52, then 2^52 and the bias taken off.
  const auto biased = hn::Or(hn::ShiftRight<52>(raised), hn::Set(du, uint64_t{0x4330000000000000}));
  const V k = hn::Sub(hn::BitCast(d, biased), hn::Set(d, 0x1p52 + 1023.0));
  const V one = hn::Set(d, 1.0);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V log_m = hn::Mul(s, Polynomial(d, hn::Mul(s, s), kLogTerms));
  const V finite = hn::Add(hn::Mul(k, hn::Set(d, 0x1.62e42fefa39efp-1)), log_m);

  const V infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  const V nan = hn::Set(d, std::numeric_limits<double>::quiet_NaN());
  const V positive = hn::IfThenElse(hn::Lt(x, infinity), finite, x);  // inf and NaN stay
  const V defined = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), nan, positive);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), defined);
}

// ln(1 + x).
template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  const V small = hn::Mul(x, Polynomial(d, x, kLog1pTerms));
  const V large = Log(d, hn::Add(x, hn::Set(d, 1.0)));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-14)), small, large);
}

// Largest magnitude that Sin and Cos reduce; beyond, the caller asks the C library.
inline constexpr double kLargestAngle = 0x1p20;

// sin(x + quarters * pi / 2), reduced by multiples of pi / 2 in three parts (Cody and Waite). The
// first two have 33 bits, so that their products with k < 2^20 are exact.
template <class D, class V>
HWY_INLINE V SinOfQuarters(D d, V x, int64_t quarters) {
  constexpr double kHalfPi[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
  const hn::RebindToSigned<D> di;
  const V shifted = hn::Add(hn::Mul(x, hn::Set(d, 0x1.45f306dc9c883p-1)), hn::Set(d, kRounder));
  const V k = hn::Sub(shifted, hn::Set(d, kRounder));
  V r = x;
  for (const double part : kHalfPi) r = hn::Sub(r, hn::Mul(k, hn::Set(d, part)));

  const V square = hn::Mul(r, r);
  const V sine = hn::Mul(r, Polynomial(d, square, kSinTerms));
  const V cosine = Polynomial(d, square, kCosTerms);
  const auto quarter = hn::Add(hn::BitCast(di, shifted), hn::Set(di, quarters));
  const auto one = hn::Set(di, int64_t{1});
  const auto odd = hn::RebindMask(d, hn::Eq(hn::And(quarter, one), one));
  const auto sign = hn::ShiftLeft<62>(hn::And(quarter, hn::Set(di, int64_t{2})));
  return hn::Xor(hn::IfThenElse(odd, cosine, sine), hn::BitCast(d, sign));
}

// y / (1 + e^-x): y times the sigmoid of x.
template <class D, class V>
HWY_INLINE V TimesSigmoid(D d, V y, V x) {
  return hn::Div(y, hn::Add(hn::Set(d, 1.0), Exp(d, hn::Neg(x))));
}

template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  return TimesSigmoid(d, hn::Set(d, 1.0), x);
}

template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const V one = hn::Set(d, 1.0);
  const V magnitude = hn::Abs(x);
  const V small = hn::Mul(x, Polynomial(d, hn::Mul(x, x), kTanhTerms));
  const V power = Exp(d, hn::Add(magnitude, magnitude));
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0), hn::Add(power, one)));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x1p-8)), small, hn::CopySign(large, x));
}

// 1 - erf(x), relative error below 1e-11 up to x = 11; beyond, where float is zero, only small.
// (1 + 2x) e^(x^2) erfc(x) is nearly constant for x >= 0 (Shepherd and Laframboise, 1981); the
// polynomial in (x - 3) / (x + 3) was fitted to it at Chebyshev points, error 5e-13.
template <class D, class V>
HWY_INLINE V Erfc(D d, V x) {
  const V one = hn::Set(d, 1.0);
  const V three = hn::Set(d, 3.0);
  const V magnitude = hn::Abs(x);
  const V limit = hn::Set(d, 11.0);
  const V a = hn::IfThenElse(hn::Gt(magnitude, limit), limit, magnitude);
  const V t = hn::Div(hn::Sub(a, three), hn::Add(a, three));
  const V scaled = hn::Div(Polynomial(d, t, kErfcTerms), hn::Add(one, hn::Add(a, a)));
  const V tail = hn::Mul(Exp(d, hn::Neg(hn::Mul(x, x))), scaled);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 2.0), tail), tail);
}

template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  const V small = hn::Mul(x, Polynomial(d, hn::Mul(x, x), kErfTerms));
  const V large = hn::CopySign(hn::Sub(hn::Set(d, 1.0), Erfc(d, hn::Abs(x))), x);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0.5)), small, large);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_MATH_INL_H_
