// Elementary functions: computed in double and rounded to float once.
//
// All are good to about 40 bits over the whole range that a float argument can reach, so the one
// rounding at the end, of whatever is composed of them, is the correct one almost always (asked
// for: 2 units in the last place).

NM_INLINE VD MagnitudeOf(VD x) { return (VD)((VQ)x & 0x7fffffffffffffffull); }
NM_INLINE VD WithSignOf(VD magnitude, VD sign) {
  return (VD)(((VQ)magnitude & 0x7fffffffffffffffull) | ((VQ)sign & 0x8000000000000000ull));
}
NM_INLINE VD Negative(VD x) { return (VD)((VQ)x ^ 0x8000000000000000ull); }
// x between `low` and `high`; NaN stays.
#if NM_BYTES == 64 && !defined(__clang__)
// GCC 12 would compare. The instructions give their second operand where one is NaN.
NM_INLINE VD Between(VD low, VD x, VD high) {
  const VD raised = __builtin_ia32_maxpd512_mask(low, x, x, -1, 4);
  return __builtin_ia32_minpd512_mask(high, raised, raised, -1, 4);
}
#else
NM_INLINE VD Between(VD low, VD x, VD high) {
  const VD raised = x < low ? low : x;
  return raised > high ? high : raised;
}
#endif

// e^x = 2^k e^r with |r| <= ln(2) / 2; inf above 709.5 and 0 below -708.7, far outside float: there
// 2^k has no bits in its fraction, and the exponent of an infinity or of zero. What is added and
// taken off rounds to an integer, which then also stands in the low bits of the sum, here with the
// bias of an exponent.
//
// For floats that have an exponential k ln(2) is below 128, so its error is below 2^-46.
NM_INLINE VD ExpOf(VD x) {
  const VD bounded = Between(SetD(-709.1), x, SetD(709.9));
  const VD shifted = bounded * 0x1.71547652b82fep+0 + (0x1.8p52 + 1023);
  const VD k = shifted - (0x1.8p52 + 1023);
  const VD r = bounded - k * 0x1.62e42fefa39efp-1;
  const VD power = (VD)((VL)shifted << 52);
  const VD square = r * r;
  const VD odd = r * Polynomial(square, kExpOddTerms);
  return (Polynomial(square, kExpEvenTerms) + odd) * power;
}
// e^x - 1.
NM_INLINE VD Expm1Of(VD x) {
  const VD small = x * Polynomial(x, kExpm1Terms);
  return MagnitudeOf(x) < 0x1p-14 ? small : ExpOf(x) - 1.0;
}

// ln(x) = k ln(2) + 2 atanh((m - 1) / (m + 1)) with x = 2^k m and m in [sqrt(1/2), sqrt(2)).
// REQUIRES: x is not subnormal as a double; no float is.
NM_INLINE VD LogOf(VD x) {
  const VQ raised = (VQ)x + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
  const VD m = (VD)((raised & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
  const VD k = (VD)((raised >> 52) | 0x4330000000000000ull) - (0x1p52 + 1023.0);
  const VD s = (m - 1.0) / (m + 1.0);
  const VD log_m = s * Polynomial(s * s, kLogTerms);
  const VD finite = k * 0x1.62e42fefa39efp-1 + log_m;
  const VD positive = x < __builtin_inf() ? finite : x;
  const VD defined = x < 0 ? SetD(__builtin_nan("")) : positive;
  return x == 0 ? SetD(-__builtin_inf()) : defined;
}
// ln(1 + x).
NM_INLINE VD Log1pOf(VD x) {
  const VD small = x * Polynomial(x, kLog1pTerms);
  return MagnitudeOf(x) < 0x1p-14 ? small : LogOf(x + 1.0);
}

// y / (1 + e^-x): y times the sigmoid of x.
NM_INLINE VD TimesSigmoidOf(VD y, VD x) { return y / (1.0 + ExpOf(Negative(x))); }

// 1 - erf(x), relative error below 1e-11 up to x = 11; beyond, where float is zero, only small.
// (1 + 2x) e^(x^2) erfc(x) is nearly constant for x >= 0 (Shepherd and Laframboise, 1981); the
// polynomial in (x - 3) / (x + 3) was fitted to it at Chebyshev points, error 5e-13.
NM_INLINE VD ErfcOf(VD x) {
  const VD magnitude = MagnitudeOf(x);
  const VD a = magnitude > 11.0 ? SetD(11.0) : magnitude;
  const VD t = (a - 3.0) / (a + 3.0);
  const VD scaled = Polynomial(t, kErfcTerms) / (1.0 + (a + a));
  const VD tail = ExpOf(Negative(x * x)) * scaled;
  return x < 0 ? 2.0 - tail : tail;
}

// sin(x + quarters * pi / 2), reduced by multiples of pi / 2 in three parts (Cody and Waite). The
// first two have 33 bits, so that their products with k < 2^20 are exact.
NM_INLINE VD SinOfQuarters(VD x, long long quarters) {
  const VD shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  const VD k = shifted - 0x1.8p52;
  const VD r = ((x - k * 0x1.921fb544p+0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2e037073p-69;
  const VD square = r * r;
  const VD sine = r * Polynomial(square, kSinTerms);
  const VD cosine = Polynomial(square, kCosTerms);
  const VL quarter = (VL)shifted + quarters;
  const VD value = (quarter & 1) == 1 ? cosine : sine;
  const VQ sign = (VQ)(quarter & 2) << 62;
  return (VD)((VQ)value ^ sign);
}
// Larger angles go to the C library, which reduces them with as many digits of pi as they need.
NM_INLINE bool IsFarAngle(float x) { return __builtin_fabsf(x) > 0x1p20f; }
NM_INLINE bool HasFarAngle(F x) {
  VI far = {};
  NM_EACH(kF) far |= Magnitude(x.v[i]) > 0x1p20f;
  long long each[NM_BYTES / 8], any = 0;
  __builtin_memcpy(each, &far, sizeof(each));
  for (int i = 0; i < NM_BYTES / 8; ++i) any |= each[i];
  return any != 0;
}
NM_INLINE F AngleOf(F x, long long quarters) {
  D wide = Widen(x);
  NM_EACH(kD) wide.v[i] = SinOfQuarters(wide.v[i], quarters);
  const F near = Narrow(wide);
  if (__builtin_expect(!HasFarAngle(x), 1)) return near;
  float angles[NM_WIDTH], sines[NM_WIDTH];
  StoreFloat(x, angles);
  StoreFloat(near, sines);
  for (int i = 0; i < NM_WIDTH; ++i) {
    if (!IsFarAngle(angles[i])) continue;
    const double angle = angles[i];
    sines[i] = (float)(quarters == 0 ? __builtin_sin(angle) : __builtin_cos(angle));
  }
  return LoadFloat(sines);
}

// ---- the instructions ----
#define NM_WIDE(name, expression) \
  NM_INLINE D Wide##name(D x) {   \
    NM_EACH(kD) {                 \
      const VD a = x.v[i];        \
      x.v[i] = (expression);      \
    }                             \
    return x;                     \
  }                               \
  NM_INLINE F name(F x) { return Narrow(Wide##name(Widen(x))); }
// base^(scale x + shift), of which `factor` is the logarithm.
NM_INLINE F Exp(F x, double factor, double scale, double shift) {
  D r = Widen(x);
  NM_EACH(kD) r.v[i] = ExpOf((r.v[i] * scale + shift) * factor);
  return Narrow(r);
}
// The logarithm of scale x + shift to the base of which `divisor` is the logarithm.
NM_INLINE F Log(F x, double divisor, double scale, double shift) {
  D r = Widen(x);
  NM_EACH(kD) r.v[i] = LogOf(r.v[i] * scale + shift) / divisor;
  return Narrow(r);
}
NM_INLINE D WideSwish(D x, double scale) {
  NM_EACH(kD) x.v[i] = TimesSigmoidOf(x.v[i], x.v[i] * scale);
  return x;
}
NM_INLINE F Swish(F x, double scale) { return Narrow(WideSwish(Widen(x), scale)); }
// silu(x) y; the product of floats is exact.
NM_INLINE D WideSwiGlu(D x, D y) {
  NM_EACH(kD) x.v[i] = TimesSigmoidOf(x.v[i] * y.v[i], x.v[i]);
  return x;
}
NM_INLINE F SwiGlu(F x, F y) { return Narrow(WideSwiGlu(Widen(x), Widen(y))); }
NM_WIDE(Cube, (a * a) * a)
NM_WIDE(Expm1, Expm1Of(a))
NM_WIDE(Log1p, Log1pOf(a))
NM_INLINE F Sin(F x) { return AngleOf(x, 0); }
NM_INLINE F Cos(F x) { return AngleOf(x, 1); }
NM_WIDE(FastGelu, TimesSigmoidOf(a, kFastGeluScale* a))
// 0.5 x (1 + tanh(u)) = x sigmoid(2u), which does not cancel for negative x.
NM_WIDE(GeluTanh, TimesSigmoidOf(a, (2 * kRootTwoOverPi) * (a * (1.0 + kGeluCubic * (a * a)))))
// 0.5 x (1 + erf(x / sqrt(2))) = 0.5 x erfc(-x / sqrt(2)), for the same reason.
NM_WIDE(GeluErf, (0.5 * a) * ErfcOf(a * -0x1.6a09e667f3bcdp-1))
