// Arithmetic on floats and bools, and what is computed in float.
#define NM_ONE(name, expression) \
  NM_INLINE F name(F x) {        \
    F r;                         \
    NM_EACH(kF) {                \
      const VF a = x.v[i];       \
      r.v[i] = (expression);     \
    }                            \
    return r;                    \
  }
#define NM_TWO(name, expression)       \
  NM_INLINE F name(F x, F y) {         \
    F r;                               \
    NM_EACH(kF) {                      \
      const VF a = x.v[i], b = y.v[i]; \
      r.v[i] = (expression);           \
    }                                  \
    return r;                          \
  }
#define NM_COMPARE(name, expression)   \
  NM_INLINE B name(F x, F y) {         \
    B r;                               \
    NM_EACH(kF) {                      \
      const VF a = x.v[i], b = y.v[i]; \
      r.v[i] = (expression);           \
    }                                  \
    return r;                          \
  }
NM_TWO(Add, a + b)
NM_TWO(Sub, a - b)
NM_TWO(Mul, a* b)
NM_TWO(Div, a / b)
// A NaN on either side wins, and the first one of zeros of both signs.
NM_TWO(Max, ((a >= b) | (a != a)) ? a : b)
NM_TWO(Min, ((a <= b) | (a != a)) ? a : b)
NM_INLINE VF Root(VF x) {
  VF r;
  for (int l = 0; l < NM_LANES; ++l) r[l] = __builtin_sqrtf(x[l]);
  return r;
}
NM_INLINE VF Magnitude(VF x) { return (VF)((VU)x & 0x7fffffffu); }
NM_INLINE VF WithSignOf(VF magnitude, VF sign) {
  return (VF)(((VU)magnitude & 0x7fffffffu) | ((VU)sign & 0x80000000u));
}
// To the nearest, ties to even.
NM_INLINE VF NearestOf(VF x) {
  const VF magnitude = Magnitude(x);
  const VF rounded = (magnitude + 0x1p23f) - 0x1p23f;
  return magnitude < 0x1p23f ? WithSignOf(rounded, x) : x;
}
#if defined(__SSE2__) && !defined(__SSE4_1__)  // no instructions: the C library is slow
NM_INLINE VF FloorOf(VF x) {
  const VF nearest = NearestOf(x);
  return nearest > x ? WithSignOf(nearest - 1, x) : nearest;
}
NM_INLINE VF CeilOf(VF x) {
  const VF nearest = NearestOf(x);
  return nearest < x ? WithSignOf(nearest + 1, x) : nearest;
}
#else
NM_INLINE VF FloorOf(VF x) {
  VF r;
  for (int l = 0; l < NM_LANES; ++l) r[l] = __builtin_floorf(x[l]);
  return r;
}
NM_INLINE VF CeilOf(VF x) {
  VF r;
  for (int l = 0; l < NM_LANES; ++l) r[l] = __builtin_ceilf(x[l]);
  return r;
}
#endif
NM_ONE(Neg, (VF)((VU)a ^ 0x80000000u))
NM_ONE(Abs, Magnitude(a))
NM_ONE(Square, a* a)
NM_INLINE F Scale(F x, double factor) { return Mul(x, Set((float)factor)); }
NM_ONE(Sqrt, Root(a))
NM_ONE(Rsqrt, SetF(1) / Root(a))
NM_ONE(Reciprocal, SetF(1) / a)
NM_ONE(Sign, Magnitude(a) > 0 ? (VF)(((VU)a & 0x80000000u) | 0x3f800000u) : a)
NM_ONE(Rint, NearestOf(a))
NM_ONE(Floor, FloorOf(a))
NM_ONE(Ceil, CeilOf(a))
NM_ONE(Relu, a <= 0 ? SetF(0) : a)
// x between `low` and `high`; NaN stays.
template <class Vector, class Number>
NM_INLINE Vector Within(Vector x, Number low, Number high) {
  x = x < low ? low - (Vector){} : x;
  return x > high ? high - (Vector){} : x;
}
NM_ONE(Relu6, Within(a, 0.0f, 6.0f))
NM_INLINE F LeakyRelu(F x, double slope) {
  NM_EACH(kF) x.v[i] = x.v[i] > 0 ? x.v[i] : x.v[i] * (float)slope;
  return x;
}
#define NM_COMPARISONS(COMPARE) \
  COMPARE(Equal, a == b)        \
  COMPARE(NotEqual, a != b)     \
  COMPARE(Less, a < b)          \
  COMPARE(LessEqual, a <= b)    \
  COMPARE(Greater, a > b)       \
  COMPARE(GreaterEqual, a >= b)
NM_COMPARISONS(NM_COMPARE)
// The quotient by an infinity of the other sign is below 0, however little.
NM_INLINE VF FloorOfQuotient(VF a, VF b) {
  const VI below =
      (Magnitude(b) == __builtin_inff()) & (Magnitude(a) < __builtin_inff()) & (a != 0);
  return (below & ((a < 0) ^ (b < 0))) ? SetF(-1) : FloorOf(a / b);
}
NM_TWO(FloorDiv, FloorOfQuotient(a, b))
NM_INLINE B And(B x, B y) {
  B r;
  NM_EACH(kF) r.v[i] = x.v[i] & y.v[i];
  return r;
}
NM_INLINE B Or(B x, B y) {
  B r;
  NM_EACH(kF) r.v[i] = x.v[i] | y.v[i];
  return r;
}
NM_INLINE B Not(B x) {
  B r;
  NM_EACH(kF) r.v[i] = ~x.v[i];
  return r;
}
NM_INLINE F Select(B x, F y, F z) {
  F r;
  NM_EACH(kF) r.v[i] = x.v[i] ? y.v[i] : z.v[i];
  return r;
}
NM_INLINE F ToFloat(B x) {
  F r;
  NM_EACH(kF) r.v[i] = x.v[i] ? SetF(1) : SetF(0);
  return r;
}
NM_INLINE B ToBool(F x) {
  B r;
  NM_EACH(kF) r.v[i] = x.v[i] != 0;
  return r;
}

// Rounds to a float of 16 bits. The processor's own conversion gives NaNs of other bits, which
// StoreHalf makes the usual ones.
NM_ONE(RoundHalf, FromHalf(ToHalf(a)))
NM_ONE(RoundBfloat, (VF)(NarrowToBfloat((VU)a) << 16))
// The same of what is computed from bfloat16 alone: its NaNs have no bits that a carry could reach.
NM_ONE(RoundBfloatOnly, (VF)(((VU)a + (((VU)a >> 16) & 1u) + 0x7fffu) & 0xffff0000u))
