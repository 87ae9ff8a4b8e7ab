// Functions of floats that are made of one exponential, computed in float: below 2 units in the
// last place over the whole range.

// c[0] + c[1] x + c[2] x^2 + ...
template <class Vector, class Number, int kTerms>
NM_INLINE Vector Polynomial(Vector x, const Number (&c)[kTerms]) {
  Vector sum = c[kTerms - 1] - (Vector){};
#pragma GCC unroll 20
  for (int i = kTerms - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

// 2^64 e^x of x <= 0, and of -104 for what is less; see ExpOfNonPositive of float_exp.h.
NM_INLINE VF ScaledExpOf(VF x) {
  x = x < -104.0f ? SetF(-104.0f) : x;
  const VF shifted = x * 0x1.715476p+0f + 0x1.8p23f;
  const VF k = shifted - 0x1.8p23f;
  const VF r = (x - k * 0x1.62ep-1f) - k * 0x1.0bfbe8p-15f;
  VF p = r * 0x1.6a23cep-10f + 0x1.123a2p-7f;
  p = p * r + 0x1.5558f2p-5f;
  p = p * r + 0x1.555492p-3f;
  p = p * r + 0x1.fffffcp-2f;
  const VF scale = (VF)(((VI)shifted - (0x4b400000 - 127 - 64)) << 23);
  return ((p * r * r + r) + 1.0f) * scale;
}
// e^x of x <= 0: the bits of row_math.cc by fewer operations. From -104 on the result is 0, which
// the last product rounds to; the first one is exact.
NM_INLINE VF ExpOfNegative(VF x) { return ScaledExpOf(x) * 0x1p-64f; }
NM_ONE(ExpOfNonPositive, ExpOfNegative(a))

// 1 / (1 + e^-x), where x is negative as e^x / (1 + e^x): no exponential overflows, and e^x keeps
// its digits where it is too small for a float. What the sum loses is taken off the quotient; there
// 1 - e^x / 2 stands for 1 / (1 + e^x).
NM_INLINE VF SigmoidOf(VF x) {
  const VF below = (VF)((VU)x | 0x80000000u);  // -|x|
  const VF scaled = ScaledExpOf(below), exponential = scaled * 0x1p-64f;
  const VF sum = 1.0f + exponential, lost = exponential - (sum - 1.0f);
  const VI negative = x < 0;
  const VF quotient = (negative ? scaled : SetF(1)) / sum;
  const VF exact = quotient - quotient * (lost * (1.0f - 0.5f * exponential));
  return exact * (negative ? SetF(0x1p-64f) : SetF(1));
}
NM_ONE(Sigmoid, SigmoidOf(a))

NM_INLINE VF TanhOf(VF x) {
  const VF square = x * x;
  const VF magnitude = Magnitude(x);
  const VF small = magnitude + magnitude * square * Polynomial(square, kTanhFloatTerms);
  const VF power = ExpOfNegative(-2.0f * magnitude);
  const VF large = 1.0f - 2.0f * power / (1.0f + power);
  return WithSignOf(magnitude < 0.625f ? small : large, x);
}
NM_ONE(Tanh, TanhOf(a))

// erf x is x times a polynomial in x^2, and from 0.875 on 1 - e^-p(|x|). Beyond 4 it rounds to 1.
NM_INLINE VF ErfOf(VF x) {
  const VF square = x * x;
  const VF magnitude = Magnitude(x);
  const VF small = magnitude + magnitude * Polynomial(square, kErfFloatTerms);
  const VF bounded = magnitude > 4.0f ? SetF(4) : magnitude;
  const VF large = 1.0f - ExpOfNegative(-Polynomial(bounded, kErfcPowerTerms));
  return WithSignOf(magnitude < 0.875f ? small : large, x);
}
NM_ONE(Erf, ErfOf(a))
