// The text in front of the functions of static kernels: NM_WIDTH numbers at a time, in as many
// vectors as the instruction set needs for them, and the functions that instructions call.
//
// Every function does the operations of the kernels of graph/ops in their order (formula_float.cc,
// formula_integer.cc, formula_double.cc, math-inl.h, row_math.cc, cast.cc, cast_half.cc), so that
// results have the same bits; tests compare them. The text includes nothing, which is why it
// compiles in a tenth of a second.
#include <fmt/ranges.h>

#include <span>

#include "graph/ops/toolbox/values/polynomials.h"
#include "graph/static_kernel/source/kernel_text.h"

namespace npumesh {
namespace {

constexpr std::string_view kVectors = R"(
#if defined(__AVX512F__)
#define NM_BYTES 64
#elif defined(__AVX2__)
#define NM_BYTES 32
#else
#define NM_BYTES 16
#endif
#define NM_INLINE static inline __attribute__((always_inline))
#define NM_LANES (NM_BYTES / 4)
#define NM_EACH(parts) for (int i = 0; i < parts; ++i)

typedef float VF __attribute__((vector_size(NM_BYTES)));
typedef unsigned VU __attribute__((vector_size(NM_BYTES)));
typedef int VI __attribute__((vector_size(NM_BYTES)));
typedef double VD __attribute__((vector_size(NM_BYTES)));
typedef long long VL __attribute__((vector_size(NM_BYTES)));
typedef unsigned long long VQ __attribute__((vector_size(NM_BYTES)));
typedef float VG __attribute__((vector_size(NM_BYTES / 2)));
typedef int VJ __attribute__((vector_size(NM_BYTES / 2)));
typedef unsigned VK __attribute__((vector_size(NM_BYTES / 2)));
typedef unsigned short VH __attribute__((vector_size(NM_BYTES / 2)));
typedef unsigned char VB __attribute__((vector_size(NM_BYTES / 4)));
enum { kF = NM_WIDTH * 4 / NM_BYTES, kD = NM_WIDTH * 8 / NM_BYTES, kSixteen = 64 / NM_BYTES };
struct F { VF v[kF]; };        // NM_WIDTH floats
struct B { VI v[kF]; };        // as many times true (all bits) or false
struct I { VI v[kF]; };        // as many integers of 32 bits
struct L { VL v[kD]; };        // as many integers of 64 bits
struct D { VD v[kD]; };        // as many doubles
struct S { VF v[kSixteen]; };  // the sixteen lanes of a sum

NM_INLINE VF SetF(float x) { return x - (VF){}; }
NM_INLINE VU SetU(unsigned x) { return x - (VU){}; }
NM_INLINE VD SetD(double x) { return x - (VD){}; }
NM_INLINE VI SetI(int x) { return x - (VI){}; }
NM_INLINE VL SetL(long long x) { return x - (VL){}; }
NM_INLINE F Set(float x) { F r; NM_EACH(kF) r.v[i] = SetF(x); return r; }
NM_INLINE D SetWide(double x) { D r; NM_EACH(kD) r.v[i] = SetD(x); return r; }
)";

constexpr std::string_view kMemory = R"(
// ---- memory ----
NM_INLINE VF WidenHalf(VU half) {
  const VU magnitude = half & 0x7fffu;
  const VU shifted = magnitude << 13;
  const VU finite = (VU)((VF)shifted * 0x1p112f);
  return (VF)(((half & 0x8000u) << 16) | (magnitude > 0x7bffu ? shifted | 0x7f800000u : finite));
}
NM_INLINE VU NarrowToHalf(VU bits) {
  const VU magnitude = bits & 0x7fffffffu;
  const VU rounded = magnitude + ((magnitude >> 13) & 1u) + (0xfffu - (112u << 23));
  const VU subnormal = (VU)((VF)magnitude + 0.5f) - 0x3f000000u;
  VU half = magnitude < 0x38800000u ? subnormal : rounded >> 13;
  half = magnitude > 0x477fefffu ? SetU(0x7c00u) : half;
  half = magnitude > 0x7f800000u ? SetU(0x7e00u) : half;
  return ((bits & 0x80000000u) >> 16) | half;
}
// By the processor where it can: the same numbers, but NaNs of other bits.
#if defined(__AVX512F__)
typedef short HalfBits __attribute__((vector_size(32)));
NM_INLINE VF FromHalf(VH half) {
  return __builtin_ia32_vcvtph2ps512_mask((HalfBits)half, (VF){}, -1, 4);
}
NM_INLINE VH ToHalf(VF x) { return (VH)__builtin_ia32_vcvtps2ph512_mask(x, 0, (HalfBits){}, -1); }
#elif defined(__F16C__)
typedef short HalfBits __attribute__((vector_size(16)));
NM_INLINE VF FromHalf(VH half) { return __builtin_ia32_vcvtph2ps256((HalfBits)half); }
NM_INLINE VH ToHalf(VF x) { return (VH)__builtin_ia32_vcvtps2ph256(x, 0); }
#else
NM_INLINE VF FromHalf(VH half) { return WidenHalf(__builtin_convertvector(half, VU)); }
NM_INLINE VH ToHalf(VF x) { return __builtin_convertvector(NarrowToHalf((VU)x), VH); }
#endif
NM_INLINE VU NarrowToBfloat(VU bits) {
  const VU rounded = (bits + ((bits >> 16) & 1u) + 0x7fffu) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded;
}
NM_INLINE F LoadFloat(const float* p) { F r; __builtin_memcpy(&r, p, sizeof(r)); return r; }
NM_INLINE void StoreFloat(F x, float* p) { __builtin_memcpy(p, &x, sizeof(x)); }
NM_INLINE VF FromBfloat(VH bfloat) { return (VF)(__builtin_convertvector(bfloat, VU) << 16); }
NM_INLINE VH ToBfloat(VF x) { return __builtin_convertvector(NarrowToBfloat((VU)x), VH); }
// A NaN becomes the usual one of its sign.
NM_INLINE VH ToUsualHalf(VF x) {
  return ToHalf(x == x ? x : (VF)(((VU)x & 0x80000000u) | 0x7fc00000u));
}
#define NM_SIXTEEN_BITS(name, from, to) \
  NM_INLINE F Load##name(const unsigned short* p) { \
    F r; \
    NM_EACH(kF) { \
      VH bits; \
      __builtin_memcpy(&bits, p + i * NM_LANES, sizeof(bits)); \
      r.v[i] = from(bits); \
    } \
    return r; \
  } \
  NM_INLINE void Store##name(F x, unsigned short* p) { \
    NM_EACH(kF) { \
      const VH bits = to(x.v[i]); \
      __builtin_memcpy(p + i * NM_LANES, &bits, sizeof(bits)); \
    } \
  }
NM_SIXTEEN_BITS(Half, FromHalf, ToUsualHalf)
NM_SIXTEEN_BITS(Bfloat, FromBfloat, ToBfloat)
NM_INLINE B LoadBool(const unsigned char* p) {
  B r;
  NM_EACH(kF) {
    VB bytes;
    __builtin_memcpy(&bytes, p + i * NM_LANES, sizeof(bytes));
    r.v[i] = __builtin_convertvector(bytes, VI) != 0;
  }
  return r;
}
NM_INLINE void StoreBool(B x, unsigned char* p) {
  NM_EACH(kF) {
    const VB bytes = __builtin_convertvector(x.v[i] & 1, VB);
    __builtin_memcpy(p + i * NM_LANES, &bytes, sizeof(bytes));
  }
}
// The last elements of a row, fewer than sixteen: by way of a whole vector.
template <class Value, class Number>
NM_INLINE Value LoadPart(Value (*load)(const Number*), const Number* p, int count) {
  Number room[NM_WIDTH] = {};
  __builtin_memcpy(room, p, count * sizeof(Number));
  return load(room);
}
template <class Value, class Number>
NM_INLINE void StorePart(void (*store)(Value, Number*), Value x, Number* p, int count) {
  Number room[NM_WIDTH];
  store(x, room);
  __builtin_memcpy(p, room, count * sizeof(Number));
}
// One number for a row.
NM_INLINE F OneFloat(const float* p) { return Set(*p); }
NM_INLINE F OneHalf(const unsigned short* p) {
  F r; NM_EACH(kF) r.v[i] = WidenHalf(SetU(*p)); return r;
}
NM_INLINE F OneBfloat(const unsigned short* p) {
  F r; NM_EACH(kF) r.v[i] = (VF)(SetU(*p) << 16); return r;
}
NM_INLINE B OneBool(const unsigned char* p) {
  B r; NM_EACH(kF) r.v[i] = (VI)SetU(*p) != 0; return r;
}
)";

constexpr std::string_view kArithmetic = R"(
// ---- arithmetic ----
#define NM_ONE(name, expression) \
  NM_INLINE F name(F x) { \
    F r; NM_EACH(kF) { const VF a = x.v[i]; r.v[i] = (expression); } return r; }
#define NM_TWO(name, expression) \
  NM_INLINE F name(F x, F y) { \
    F r; NM_EACH(kF) { const VF a = x.v[i], b = y.v[i]; r.v[i] = (expression); } return r; }
#define NM_COMPARE(name, expression) \
  NM_INLINE B name(F x, F y) { \
    B r; NM_EACH(kF) { const VF a = x.v[i], b = y.v[i]; r.v[i] = (expression); } return r; }
NM_TWO(Add, a + b)
NM_TWO(Sub, a - b)
NM_TWO(Mul, a * b)
NM_TWO(Div, a / b)
NM_TWO(Max, (a >= b) | (a != a) ? a : b)
NM_TWO(Min, (a <= b) | (a != a) ? a : b)
NM_INLINE VF Root(VF x) {
  VF r;
  for (int l = 0; l < NM_LANES; ++l) r[l] = __builtin_sqrtf(x[l]);
  return r;
}
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
NM_INLINE VF Magnitude(VF x) { return (VF)((VU)x & 0x7fffffffu); }
NM_ONE(Neg, (VF)((VU)a ^ 0x80000000u))
NM_ONE(Abs, Magnitude(a))
NM_ONE(Square, a * a)
NM_ONE(Sqrt, Root(a))
NM_ONE(Rsqrt, SetF(1) / Root(a))
NM_ONE(Reciprocal, SetF(1) / a)
NM_ONE(Sign, Magnitude(a) > 0 ? (VF)(((VU)a & 0x80000000u) | 0x3f800000u) : a)
NM_ONE(Floor, FloorOf(a))
NM_ONE(Ceil, CeilOf(a))
NM_ONE(Relu, a <= 0 ? SetF(0) : a)
#define NM_COMPARISONS(COMPARE) \
  COMPARE(Equal, a == b) \
  COMPARE(NotEqual, a != b) \
  COMPARE(Less, a < b) \
  COMPARE(LessEqual, a <= b) \
  COMPARE(Greater, a > b) \
  COMPARE(GreaterEqual, a >= b)
NM_COMPARISONS(NM_COMPARE)
NM_INLINE B And(B x, B y) { B r; NM_EACH(kF) r.v[i] = x.v[i] & y.v[i]; return r; }
NM_INLINE B Or(B x, B y) { B r; NM_EACH(kF) r.v[i] = x.v[i] | y.v[i]; return r; }
NM_INLINE B Not(B x) { B r; NM_EACH(kF) r.v[i] = ~x.v[i]; return r; }
NM_INLINE F Select(B x, F y, F z) {
  F r; NM_EACH(kF) r.v[i] = x.v[i] ? y.v[i] : z.v[i]; return r;
}
NM_INLINE F ToFloat(B x) { F r; NM_EACH(kF) r.v[i] = x.v[i] ? SetF(1) : SetF(0); return r; }
NM_INLINE B ToBool(F x) { B r; NM_EACH(kF) r.v[i] = x.v[i] != 0; return r; }

// Rounds to a float of 16 bits. The processor's own conversion gives NaNs of other bits, which
// StoreHalf makes the usual ones.
NM_ONE(RoundHalf, FromHalf(ToHalf(a)))
NM_ONE(RoundBfloat, (VF)(NarrowToBfloat((VU)a) << 16))
// The same of what is computed from bfloat16 alone: its NaNs have no bits that a carry could reach.
NM_ONE(RoundBfloatOnly, (VF)(((VU)a + (((VU)a >> 16) & 1u) + 0x7fffu) & 0xffff0000u))

// e^x of x <= 0, in float: the bits of row_math.cc by fewer operations. From -104 on the result is 0,
// which the last product rounds to; the first one is exact.
NM_INLINE VF ExpOfNegative(VF x) {
  x = x < -104.0f ? SetF(-104.0f) : x;
  const VF shifted = x * 0x1.715476p+0f + 0x1.8p23f;
  const VF k = shifted - 0x1.8p23f;
  const VF r = (x - k * 0x1.62ep-1f) - k * 0x1.0bfbe8p-15f;
  VF p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = (p * r * r + r) + 1.0f;
  const VF power = (VF)(((VI)shifted - (0x4b400000 - 127 - 64)) << 23);
  return p * power * 0x1p-64f;
}
NM_ONE(ExpOfNonPositive, ExpOfNegative(a))
)";

constexpr std::string_view kRows = R"(
// ---- rows ----
NM_INLINE D Widen(F x) {
  D r;
  NM_EACH(kF) {
    VG part[2];
    __builtin_memcpy(part, &x.v[i], sizeof(part));
    r.v[2 * i] = __builtin_convertvector(part[0], VD);
    r.v[2 * i + 1] = __builtin_convertvector(part[1], VD);
  }
  return r;
}
NM_INLINE F Narrow(D x) {
  F r;
  NM_EACH(kF) {
    const VG part[2] = {__builtin_convertvector(x.v[2 * i], VG),
                        __builtin_convertvector(x.v[2 * i + 1], VG)};
    __builtin_memcpy(&r.v[i], part, sizeof(part));
  }
  return r;
}
// A sum in sixteen lanes, which are emptied into a double after 64 additions at most.
NM_INLINE void Empty(S& lanes, double& total) {
  float each[16];
  __builtin_memcpy(each, &lanes, sizeof(each));
  for (int i = 0; i < 16; ++i) total += (double)each[i];
  lanes = S();
}
NM_INLINE void AddLanes(S& lanes, F x) { NM_EACH(kF) lanes.v[i % kSixteen] += x.v[i]; }
// The first `count` lanes; elsewhere `filler`.
NM_INLINE F FirstLanes(F x, int count, float filler) {
  float each[NM_WIDTH];
  __builtin_memcpy(each, &x, sizeof(each));
  for (int i = count; i < NM_WIDTH; ++i) each[i] = filler;
  F r;
  __builtin_memcpy(&r, each, sizeof(each));
  return r;
}
NM_INLINE void Raise(F& most, F x) {
  NM_EACH(kF) most.v[i] = most.v[i] < x.v[i] ? x.v[i] : most.v[i];
}
NM_INLINE F LargestLane(F most) {
  float each[NM_WIDTH], largest;
  __builtin_memcpy(each, &most, sizeof(each));
  largest = each[0];
  for (int i = 1; i < NM_WIDTH; ++i) largest = largest < each[i] ? each[i] : largest;
  return Set(largest);
}
// As Max, but of zeros the positive one in any order.
NM_TWO(Largest, (a > b) | (a != a) | ((a == b) & ((VI)a >= 0)) ? a : b)
NM_INLINE F LargestOrNan(F most) {
  float each[NM_WIDTH], largest;
  __builtin_memcpy(each, &most, sizeof(each));
  largest = each[0];
  for (int i = 1; i < NM_WIDTH; ++i) {
    const bool stays = largest > each[i] || largest != largest ||
                       (largest == each[i] && !__builtin_signbit(largest));
    largest = stays ? largest : each[i];
  }
  return Set(largest);
}
NM_INLINE void AddWide(D& lanes, F x) {
  const D wide = Widen(x);
  NM_EACH(kD) lanes.v[i] += wide.v[i];
}
NM_INLINE double TotalOfLanes(D lanes) {
  double each[NM_WIDTH], total = 0;
  __builtin_memcpy(each, &lanes, sizeof(each));
  for (int i = 0; i < NM_WIDTH; ++i) total += each[i];
  return total;
}
NM_INLINE F MeanOf(double sum, double count) { return Set((float)(sum / count)); }
NM_INLINE F ReciprocalOf(double sum) { return Set((float)(1.0 / sum)); }
NM_INLINE F RootOfMeanOf(double sum, double count, double epsilon) {
  return Set((float)(1.0 / __builtin_sqrt(sum / count + epsilon)));
}
)";

constexpr std::string_view kWide = R"(
// ---- computed in double, rounded once ----
template <int kTerms>
NM_INLINE VD Polynomial(VD x, const double (&c)[kTerms]) {
  VD sum = SetD(c[kTerms - 1]);
#pragma GCC unroll 20
  for (int i = kTerms - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}
NM_INLINE VD MagnitudeOf(VD x) { return (VD)((VQ)x & 0x7fffffffffffffffull); }
NM_INLINE VD WithSignOf(VD magnitude, VD sign) {
  return (VD)(((VQ)magnitude & 0x7fffffffffffffffull) | ((VQ)sign & 0x8000000000000000ull));
}
NM_INLINE VD Negative(VD x) { return (VD)((VQ)x ^ 0x8000000000000000ull); }
NM_INLINE VD ExpOf(VD x) {
  const VD raised = x < -709.1 ? SetD(-709.1) : x;
  const VD bounded = raised > 709.9 ? SetD(709.9) : raised;
  const VD shifted = bounded * 0x1.71547652b82fep+0 + (0x1.8p52 + 1023);
  const VD k = shifted - (0x1.8p52 + 1023);
  const VD r = bounded - k * 0x1.62e42fefa39efp-1;
  const VD power = (VD)((VL)shifted << 52);
  const VD square = r * r;
  const VD odd = r * Polynomial(square, kExpOddTerms);
  return (Polynomial(square, kExpEvenTerms) + odd) * power;
}
NM_INLINE VD Expm1Of(VD x) {
  const VD small = x * Polynomial(x, kExpm1Terms);
  return MagnitudeOf(x) < 0x1p-14 ? small : ExpOf(x) - 1.0;
}
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
NM_INLINE VD Log1pOf(VD x) {
  const VD small = x * Polynomial(x, kLog1pTerms);
  return MagnitudeOf(x) < 0x1p-14 ? small : LogOf(x + 1.0);
}
NM_INLINE VD TimesSigmoidOf(VD y, VD x) { return y / (1.0 + ExpOf(Negative(x))); }
NM_INLINE VD TanhOf(VD x) {
  const VD magnitude = MagnitudeOf(x);
  const VD small = x * Polynomial(x * x, kTanhTerms);
  const VD power = ExpOf(magnitude + magnitude);
  const VD large = 1.0 - 2.0 / (power + 1.0);
  return magnitude < 0x1p-8 ? small : WithSignOf(large, x);
}
NM_INLINE VD ErfcOf(VD x) {
  const VD magnitude = MagnitudeOf(x);
  const VD a = magnitude > 11.0 ? SetD(11.0) : magnitude;
  const VD t = (a - 3.0) / (a + 3.0);
  const VD scaled = Polynomial(t, kErfcTerms) / (1.0 + (a + a));
  const VD tail = ExpOf(Negative(x * x)) * scaled;
  return x < 0 ? 2.0 - tail : tail;
}
NM_INLINE VD ErfOf(VD x) {
  const VD magnitude = MagnitudeOf(x);
  const VD small = x * Polynomial(x * x, kErfTerms);
  return magnitude < 0.5 ? small : WithSignOf(1.0 - ErfcOf(magnitude), x);
}
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
  VD near = (VD)((VQ)value ^ sign);
  for (int l = 0; l < NM_LANES / 2; ++l) {
    if (!(__builtin_fabs(x[l]) > 0x1p20)) continue;
    near[l] = quarters == 0 ? __builtin_sin(x[l]) : __builtin_cos(x[l]);
  }
  return near;
}
#define NM_WIDE(name, expression) \
  NM_INLINE F name(F x) { \
    D r = Widen(x); NM_EACH(kD) { const VD a = r.v[i]; r.v[i] = (expression); } return Narrow(r); }
NM_INLINE F Exp(F x, double factor, double scale, double shift) {
  D r = Widen(x);
  NM_EACH(kD) r.v[i] = ExpOf((r.v[i] * scale + shift) * factor);
  return Narrow(r);
}
NM_INLINE F Log(F x, double divisor, double scale, double shift) {
  D r = Widen(x);
  NM_EACH(kD) r.v[i] = LogOf(r.v[i] * scale + shift) / divisor;
  return Narrow(r);
}
NM_INLINE F Swish(F x, double scale) {
  D r = Widen(x);
  NM_EACH(kD) r.v[i] = TimesSigmoidOf(r.v[i], r.v[i] * scale);
  return Narrow(r);
}
NM_INLINE F SwiGlu(F x, F y) {
  D gate = Widen(x);
  const D value = Widen(y);
  NM_EACH(kD) gate.v[i] = TimesSigmoidOf(gate.v[i] * value.v[i], gate.v[i]);
  return Narrow(gate);
}
NM_WIDE(Expm1, Expm1Of(a))
NM_WIDE(Log1p, Log1pOf(a))
NM_WIDE(Sin, SinOfQuarters(a, 0))
NM_WIDE(Cos, SinOfQuarters(a, 1))
NM_WIDE(Tanh, TanhOf(a))
NM_WIDE(Erf, ErfOf(a))
NM_WIDE(Sigmoid, TimesSigmoidOf(SetD(1), a))
NM_WIDE(FastGelu, TimesSigmoidOf(a, a * 1.702))
NM_WIDE(GeluTanh, TimesSigmoidOf(a, 0x1.9884533d43651p+0 * (a * (1.0 + 0.044715 * (a * a)))))
NM_WIDE(GeluErf, (0.5 * a) * ErfcOf(a * -0x1.6a09e667f3bcdp-1))
)";

constexpr std::string_view kIntegers = R"(
// ---- elements of other types ----
#define NM_STORED(name, number, Value, Vector, parts, lanes) \
  typedef number Stored##name __attribute__((vector_size((lanes) * sizeof(number)))); \
  NM_INLINE Value Load##name(const number* p) { \
    Value r; \
    NM_EACH(parts) { \
      Stored##name bits; \
      __builtin_memcpy(&bits, p + i * (lanes), sizeof(bits)); \
      r.v[i] = __builtin_convertvector(bits, Vector); \
    } \
    return r; \
  } \
  NM_INLINE void Store##name(Value x, number* p) { \
    NM_EACH(parts) { \
      const Stored##name bits = __builtin_convertvector(x.v[i], Stored##name); \
      __builtin_memcpy(p + i * (lanes), &bits, sizeof(bits)); \
    } \
  } \
  NM_INLINE Value One##name(const number* p) { \
    Value r; NM_EACH(parts) r.v[i] = *p - (Vector){}; return r; \
  }
NM_STORED(Int8, signed char, I, VI, kF, NM_LANES)
NM_STORED(Uint8, unsigned char, I, VI, kF, NM_LANES)
NM_STORED(Int16, short, I, VI, kF, NM_LANES)
NM_STORED(Uint16, unsigned short, I, VI, kF, NM_LANES)
NM_STORED(Int32, int, I, VI, kF, NM_LANES)
NM_STORED(Uint32, unsigned, L, VL, kD, NM_LANES / 2)
NM_STORED(Int64, long long, L, VL, kD, NM_LANES / 2)
NM_STORED(Double, double, D, VD, kD, NM_LANES / 2)
// Floats, each in the low half of 64 bits.
NM_INLINE F LoadPacked(const unsigned long long* p) {
  F r;
  NM_EACH(kF) {
    VQ bits[2];
    __builtin_memcpy(bits, p + i * NM_LANES, sizeof(bits));
    const VK low[2] = {__builtin_convertvector(bits[0], VK), __builtin_convertvector(bits[1], VK)};
    __builtin_memcpy(&r.v[i], low, sizeof(low));
  }
  return r;
}
NM_INLINE F OnePacked(const unsigned long long* p) {
  F r; NM_EACH(kF) r.v[i] = (VF)SetU((unsigned)*p); return r;
}

// ---- between types ----
NM_INLINE B NarrowMask(const VL* wide) {
  B r;
  NM_EACH(kF) {
    const VJ part[2] = {__builtin_convertvector(wide[2 * i], VJ),
                        __builtin_convertvector(wide[2 * i + 1], VJ)};
    __builtin_memcpy(&r.v[i], part, sizeof(part));
  }
  return r;
}
#define NM_WIDEN(name, From, Part, To, Vector) \
  NM_INLINE To name(From x) { \
    To r; \
    NM_EACH(kF) { \
      Part part[2]; \
      __builtin_memcpy(part, &x.v[i], sizeof(part)); \
      r.v[2 * i] = __builtin_convertvector(part[0], Vector); \
      r.v[2 * i + 1] = __builtin_convertvector(part[1], Vector); \
    } \
    return r; \
  }
#define NM_NARROW(name, From, Part, To) \
  NM_INLINE To name(From x) { \
    To r; \
    NM_EACH(kF) { \
      const Part part[2] = {__builtin_convertvector(x.v[2 * i], Part), \
                            __builtin_convertvector(x.v[2 * i + 1], Part)}; \
      __builtin_memcpy(&r.v[i], part, sizeof(part)); \
    } \
    return r; \
  }
NM_WIDEN(WideMask, B, VJ, L, VL)
NM_WIDEN(ToLong, I, VJ, L, VL)
NM_WIDEN(ToDouble, I, VJ, D, VD)
NM_NARROW(ToInt, L, VJ, I)
NM_NARROW(ToFloat, L, VG, F)
NM_NARROW(Truncated, D, VJ, I)
NM_INLINE I ToInt(B x) { I r; NM_EACH(kF) r.v[i] = x.v[i] & 1; return r; }
NM_INLINE L ToLong(B x) { return ToLong(ToInt(x)); }
NM_INLINE D ToDouble(B x) { return ToDouble(ToInt(x)); }
NM_INLINE D ToDouble(F x) { return Widen(x); }
NM_INLINE D ToDouble(L x) {
  D r; NM_EACH(kD) r.v[i] = __builtin_convertvector(x.v[i], VD); return r;
}
NM_INLINE F ToFloat(I x) {
  F r; NM_EACH(kF) r.v[i] = __builtin_convertvector(x.v[i], VF); return r;
}
NM_INLINE F ToFloat(D x) { return Narrow(x); }
NM_INLINE B ToBool(I x) { B r; NM_EACH(kF) r.v[i] = (VI)(x.v[i] != 0); return r; }
NM_INLINE B ToBool(L x) {
  VL wide[kD]; NM_EACH(kD) wide[i] = (VL)(x.v[i] != 0); return NarrowMask(wide);
}
NM_INLINE B ToBool(D x) {
  VL wide[kD]; NM_EACH(kD) wide[i] = (VL)(x.v[i] != 0); return NarrowMask(wide);
}
// The last bit is set where a digit was cut off, so that a second rounding gives what one would.
NM_INLINE F ToOdd(D x) {
  F r = Narrow(x);
  const D back = Widen(r);
  VL above[kD], below[kD];
  NM_EACH(kD) above[i] = (VL)(MagnitudeOf(back.v[i]) < MagnitudeOf(x.v[i]));
  NM_EACH(kD) below[i] = (VL)(MagnitudeOf(back.v[i]) > MagnitudeOf(x.v[i]));
  const B up = NarrowMask(above), down = NarrowMask(below);
  NM_EACH(kF) {
    const VI bits = (VI)r.v[i];
    r.v[i] = (VF)(bits + ((down.v[i] - up.v[i]) & ((bits & 1) - 1)));
  }
  return r;
}
// To the nearest, ties to even.
NM_INLINE VF NearestOf(VF x) {
  const VF magnitude = Magnitude(x);
  const VF rounded = (magnitude + 0x1p23f) - 0x1p23f;
  return magnitude < 0x1p23f ? (VF)((VU)rounded | ((VU)x & 0x80000000u)) : x;
}
NM_ONE(Rint, NearestOf(a))
// Truncates what is clipped; NaN gives 0.
NM_INLINE VF Clipped(VF x, float least, float most) {
  x = x > most ? SetF(most) : x;
  x = x < least ? SetF(least) : x;
  return x == x ? x : SetF(0);
}
NM_INLINE VD Clipped(VD x, double least, double most) {
  x = x > most ? SetD(most) : x;
  x = x < least ? SetD(least) : x;
  return x == x ? x : SetD(0);
}
#define NM_SATURATE(name, least, most) \
  NM_INLINE I Saturate##name(F x) { \
    I r; \
    NM_EACH(kF) r.v[i] = __builtin_convertvector(Clipped(x.v[i], least, most), VI); \
    return r; \
  } \
  NM_INLINE I Saturate##name(D x) { \
    NM_EACH(kD) x.v[i] = Clipped(x.v[i], (double)(least), (double)(most)); \
    return Truncated(x); \
  }
NM_SATURATE(Int8, -128, 127)
NM_SATURATE(Uint8, 0, 255)
NM_SATURATE(Int16, -32768, 32767)
NM_SATURATE(Uint16, 0, 65535)
NM_INLINE I SaturateInt32(F x) {
  I r;
  NM_EACH(kF) {
    const VF a = x.v[i];
    const VI whole = __builtin_convertvector(Clipped(a, -0x1p31f, 0x1.fffffep30f), VI);
    r.v[i] = a >= 0x1p31f ? SetI(0x7fffffff) : whole;
  }
  return r;
}
NM_INLINE I SaturateInt32(D x) {
  NM_EACH(kD) x.v[i] = Clipped(x.v[i], -2147483648.0, 2147483647.0);
  return Truncated(x);
}
NM_INLINE L SaturateInt64(D x) {
  L r;
  NM_EACH(kD) {
    const VD a = x.v[i];
    const VL whole = __builtin_convertvector(Clipped(a, -0x1p63, 0x1.fffffffffffffp62), VL);
    r.v[i] = a >= 0x1p63 ? SetL(0x7fffffffffffffffll) : whole;
  }
  return r;
}
NM_INLINE L SaturateUint32(D x) {
  L r;
  NM_EACH(kD) r.v[i] = __builtin_convertvector(Clipped(x.v[i], 0, 4294967295.0), VL);
  return r;
}
NM_INLINE L SaturateInt64(F x) { return SaturateInt64(Widen(x)); }
NM_INLINE L SaturateUint32(F x) { return SaturateUint32(Widen(x)); }
)";

constexpr std::string_view kOtherNumbers = R"(
// ---- arithmetic on other types; integers wrap ----
#define NM_ONE_OF(T, V, parts, name, expression) \
  NM_INLINE T name(T x) { \
    T r; NM_EACH(parts) { const V a = x.v[i]; r.v[i] = (V)(expression); } return r; }
#define NM_TWO_OF(T, V, parts, name, expression) \
  NM_INLINE T name(T x, T y) { \
    T r; NM_EACH(parts) { const V a = x.v[i], b = y.v[i]; r.v[i] = (V)(expression); } return r; }
#define NM_COMPARE_WIDE(T, V, name, expression) \
  NM_INLINE B name(T x, T y) { \
    VL wide[kD]; \
    NM_EACH(kD) { const V a = x.v[i], b = y.v[i]; wide[i] = (VL)(expression); } \
    return NarrowMask(wide); \
  }
#define NM_COMPARE_INT(name, expression) \
  NM_INLINE B name(I x, I y) { \
    B r; NM_EACH(kF) { const VI a = x.v[i], b = y.v[i]; r.v[i] = (VI)(expression); } return r; }
#define NM_COMPARE_OTHERS(name, expression) \
  NM_COMPARE_INT(name, expression) \
  NM_COMPARE_WIDE(L, VL, name, expression) \
  NM_COMPARE_WIDE(D, VD, name, expression)
NM_COMPARISONS(NM_COMPARE_OTHERS)
// U: the unsigned form of V, whose sums and products wrap.
#define NM_WHOLE(T, V, U, parts) \
  NM_TWO_OF(T, V, parts, Add, (U)a + (U)b) \
  NM_TWO_OF(T, V, parts, Sub, (U)a - (U)b) \
  NM_TWO_OF(T, V, parts, Mul, (U)a * (U)b) \
  NM_TWO_OF(T, V, parts, Max, a > b ? a : b) \
  NM_TWO_OF(T, V, parts, Min, a < b ? a : b) \
  NM_ONE_OF(T, V, parts, Neg, -(U)a) \
  NM_ONE_OF(T, V, parts, Abs, a < 0 ? (V)-(U)a : a) \
  NM_ONE_OF(T, V, parts, Square, (U)a * (U)a) \
  NM_ONE_OF(T, V, parts, Sign, (V)(a < 0) - (V)(a > 0)) \
  NM_ONE_OF(T, V, parts, Relu, a < 0 ? (V){} : a)
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
NM_TWO_OF(D, VD, kD, Add, a + b)
NM_TWO_OF(D, VD, kD, Sub, a - b)
NM_TWO_OF(D, VD, kD, Mul, a * b)
NM_TWO_OF(D, VD, kD, Div, a / b)
NM_TWO_OF(D, VD, kD, Max, (a >= b) | (a != a) ? a : b)
NM_TWO_OF(D, VD, kD, Min, (a <= b) | (a != a) ? a : b)
NM_ONE_OF(D, VD, kD, Neg, Negative(a))
NM_ONE_OF(D, VD, kD, Abs, MagnitudeOf(a))
NM_ONE_OF(D, VD, kD, Square, a * a)
NM_ONE_OF(D, VD, kD, Sqrt, RootOf(a))
NM_ONE_OF(D, VD, kD, Rsqrt, 1.0 / RootOf(a))
NM_ONE_OF(D, VD, kD, Reciprocal, 1.0 / a)
NM_ONE_OF(D, VD, kD, Sign, MagnitudeOf(a) > 0 ? WithSignOf(SetD(1), a) : a)
NM_ONE_OF(D, VD, kD, Floor, FloorOf(a))
NM_ONE_OF(D, VD, kD, Ceil, CeilOf(a))
NM_ONE_OF(D, VD, kD, Relu, a <= 0 ? SetD(0) : a)
NM_INLINE I Select(B x, I y, I z) {
  I r; NM_EACH(kF) r.v[i] = x.v[i] ? y.v[i] : z.v[i]; return r;
}
NM_INLINE L Select(B x, L y, L z) {
  const L mask = WideMask(x);
  L r; NM_EACH(kD) r.v[i] = mask.v[i] ? y.v[i] : z.v[i]; return r;
}
NM_INLINE D Select(B x, D y, D z) {
  const L mask = WideMask(x);
  D r; NM_EACH(kD) r.v[i] = mask.v[i] ? y.v[i] : z.v[i]; return r;
}
)";

// "static const double kExpEvenTerms[] = {0x1p+0, ...};"
std::string ConstantText(std::string_view name, std::span<const double> terms) {
  return fmt::format("static const double {}[] = {{{:a}}};\n", name, fmt::join(terms, ", "));
}

std::string PolynomialText() {
  return ConstantText("kExpEvenTerms", kExpEvenTerms) + ConstantText("kExpOddTerms", kExpOddTerms) +
         ConstantText("kExpm1Terms", kExpm1Terms) + ConstantText("kLogTerms", kLogTerms) +
         ConstantText("kLog1pTerms", kLog1pTerms) + ConstantText("kSinTerms", kSinTerms) +
         ConstantText("kCosTerms", kCosTerms) + ConstantText("kTanhTerms", kTanhTerms) +
         ConstantText("kErfTerms", kErfTerms) + ConstantText("kErfcTerms", kErfcTerms);
}

}  // namespace

std::string KernelBeginning() {
  std::string text =
      "// Static kernels of npumesh: a function for each, on so many numbers at a time.\n";
  text += PolynomialText();
  for (const int width : kKernelWidths) {
    text += fmt::format("#undef NM_WIDTH\n#define NM_WIDTH {}\nnamespace by{} {{", width, width);
    for (const std::string_view part :
         {kVectors, kMemory, kArithmetic, kRows, kWide, kIntegers, kOtherNumbers}) {
      text += part;
    }
    text += fmt::format("}}  // namespace by{}\n", width);
  }
  return text;
}

}  // namespace npumesh
