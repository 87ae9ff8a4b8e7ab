// Arithmetic on integers, which wrap, and on doubles.
#define NM_ONE_OF(T, V, parts, name, expression) \
  NM_INLINE T name(T x) {                        \
    T r;                                         \
    NM_EACH(parts) {                             \
      const V a = x.v[i];                        \
      r.v[i] = (V)(expression);                  \
    }                                            \
    return r;                                    \
  }
#define NM_TWO_OF(T, V, parts, name, expression) \
  NM_INLINE T name(T x, T y) {                   \
    T r;                                         \
    NM_EACH(parts) {                             \
      const V a = x.v[i], b = y.v[i];            \
      r.v[i] = (V)(expression);                  \
    }                                            \
    return r;                                    \
  }
#define NM_COMPARE_WIDE(T, V, name, expression) \
  NM_INLINE B name(T x, T y) {                  \
    VL wide[kD];                                \
    NM_EACH(kD) {                               \
      const V a = x.v[i], b = y.v[i];           \
      wide[i] = (VL)(expression);               \
    }                                           \
    return NarrowMask(wide);                    \
  }
#define NM_COMPARE_INT(name, expression) \
  NM_INLINE B name(I x, I y) {           \
    B r;                                 \
    NM_EACH(kF) {                        \
      const VI a = x.v[i], b = y.v[i];   \
      r.v[i] = (VI)(expression);         \
    }                                    \
    return r;                            \
  }
#define NM_COMPARE_OTHERS(name, expression) \
  NM_COMPARE_INT(name, expression)          \
  NM_COMPARE_WIDE(L, VL, name, expression)  \
  NM_COMPARE_WIDE(D, VD, name, expression)
NM_COMPARISONS(NM_COMPARE_OTHERS)
// U: the unsigned form of V, whose sums and products wrap.
#define NM_WHOLE(T, V, U, parts)                        \
  NM_TWO_OF(T, V, parts, Add, (U)a + (U)b)              \
  NM_TWO_OF(T, V, parts, Sub, (U)a - (U)b)              \
  NM_TWO_OF(T, V, parts, Mul, (U)a*(U)b)                \
  NM_TWO_OF(T, V, parts, Max, a > b ? a : b)            \
  NM_TWO_OF(T, V, parts, Min, a < b ? a : b)            \
  NM_ONE_OF(T, V, parts, Neg, -(U)a)                    \
  NM_ONE_OF(T, V, parts, Abs, a < 0 ? (V) - (U)a : a)   \
  NM_ONE_OF(T, V, parts, Square, (U)a*(U)a)             \
  NM_ONE_OF(T, V, parts, Sign, (V)(a < 0) - (V)(a > 0)) \
  NM_ONE_OF(T, V, parts, Relu, a < 0 ? (V){} : a)       \
  NM_ONE_OF(T, V, parts, Relu6, Within(a, 0, 6))
NM_WHOLE(I, VI, VU, kF)
NM_WHOLE(L, VL, VQ, kD)
NM_ONE_OF(I, VI, kF, WrapInt8, (VI)((VU)a << 24) >> 24)
NM_ONE_OF(I, VI, kF, WrapUint8, a & 0xff)
NM_ONE_OF(I, VI, kF, WrapInt16, (VI)((VU)a << 16) >> 16)
NM_ONE_OF(I, VI, kF, WrapUint16, a & 0xffff)
NM_ONE_OF(L, VL, kD, WrapUint32, a & 0xffffffffll)
NM_INLINE VD RootOf(VD x) {
  VD r;
  for (int l = 0; l < NM_LANES / 2; ++l) r[l] = __builtin_sqrt(x[l]);
  return r;
}
NM_INLINE VD FloorOf(VD x) {
  VD r;
  for (int l = 0; l < NM_LANES / 2; ++l) r[l] = __builtin_floor(x[l]);
  return r;
}
NM_INLINE VD CeilOf(VD x) {
  VD r;
  for (int l = 0; l < NM_LANES / 2; ++l) r[l] = __builtin_ceil(x[l]);
  return r;
}
NM_INLINE VD FloorOfQuotient(VD a, VD b) {
  const VL below =
      (MagnitudeOf(b) == __builtin_inf()) & (MagnitudeOf(a) < __builtin_inf()) & (a != 0);
  return (below & ((a < 0) ^ (b < 0))) ? SetD(-1) : FloorOf(a / b);
}
NM_TWO_OF(D, VD, kD, FloorDiv, FloorOfQuotient(a, b))
NM_TWO_OF(D, VD, kD, Add, a + b)
NM_TWO_OF(D, VD, kD, Sub, a - b)
NM_TWO_OF(D, VD, kD, Mul, a* b)
NM_TWO_OF(D, VD, kD, Div, a / b)
NM_INLINE D Scale(D x, double factor) { return Mul(x, SetWide(factor)); }
NM_TWO_OF(D, VD, kD, Max, ((a >= b) | (a != a)) ? a : b)
NM_TWO_OF(D, VD, kD, Min, ((a <= b) | (a != a)) ? a : b)
NM_ONE_OF(D, VD, kD, Neg, Negative(a))
NM_ONE_OF(D, VD, kD, Abs, MagnitudeOf(a))
NM_ONE_OF(D, VD, kD, Square, a* a)
NM_ONE_OF(D, VD, kD, Sqrt, RootOf(a))
NM_ONE_OF(D, VD, kD, Rsqrt, 1.0 / RootOf(a))
NM_ONE_OF(D, VD, kD, Reciprocal, 1.0 / a)
NM_ONE_OF(D, VD, kD, Sign, MagnitudeOf(a) > 0 ? WithSignOf(SetD(1), a) : a)
NM_INLINE VD NearestOf(VD x) {
  const VD magnitude = MagnitudeOf(x);
  const VD rounded = (magnitude + 0x1p52) - 0x1p52;
  return magnitude < 0x1p52 ? WithSignOf(rounded, x) : x;
}
NM_ONE_OF(D, VD, kD, Rint, NearestOf(a))
NM_ONE_OF(D, VD, kD, Floor, FloorOf(a))
NM_ONE_OF(D, VD, kD, Ceil, CeilOf(a))
NM_ONE_OF(D, VD, kD, Relu, a <= 0 ? SetD(0) : a)
NM_ONE_OF(D, VD, kD, Relu6, Within(a, 0.0, 6.0))
NM_ONE_OF(D, VD, kD, HardSwish, (1.0 / 6) * a * Within(a + 3.0, 0.0, 6.0))
NM_INLINE D HardSigmoid(D x, double alpha, double beta) {
  NM_EACH(kD) x.v[i] = Within(x.v[i] * alpha + beta, 0.0, 1.0);
  return x;
}
NM_INLINE F HardSwish(F x) { return Narrow(HardSwish(Widen(x))); }
NM_INLINE F HardSigmoid(F x, double alpha, double beta) {
  return Narrow(HardSigmoid(Widen(x), alpha, beta));
}
NM_INLINE D LeakyRelu(D x, double slope) {
  NM_EACH(kD) x.v[i] = x.v[i] > 0 ? x.v[i] : x.v[i] * slope;
  return x;
}
NM_INLINE I Select(B x, I y, I z) {
  I r;
  NM_EACH(kF) r.v[i] = x.v[i] ? y.v[i] : z.v[i];
  return r;
}
NM_INLINE L Select(B x, L y, L z) {
  const L mask = WideMask(x);
  L r;
  NM_EACH(kD) r.v[i] = mask.v[i] ? y.v[i] : z.v[i];
  return r;
}
NM_INLINE D Select(B x, D y, D z) {
  const L mask = WideMask(x);
  D r;
  NM_EACH(kD) r.v[i] = mask.v[i] ? y.v[i] : z.v[i];
  return r;
}
