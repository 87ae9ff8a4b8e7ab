// Formulas on 64-bit integers, which serve all narrower ones too, and on bool.
//
// Integers wrap modulo 2^64, so sums and products are computed unsigned. The driver refuses zero
// divisors before kDiv, kFloorDiv and kFloorMod run.
#include <type_traits>

#include "graph/ops/toolbox/formula/formula.h"

namespace npumesh {
namespace {

template <typename In, typename Out, Out (*kFunction)(In)>
void Each(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const In* x = static_cast<const In*>(in[0]);
  Out* y = static_cast<Out*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = kFunction(x[i]);
}

template <typename In, typename Out, Out (*kFunction)(In, In)>
void Pairs(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const In* a = static_cast<const In*>(in[0]);
  const In* b = static_cast<const In*>(in[1]);
  Out* y = static_cast<Out*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = kFunction(a[i], b[i]);
}

// T is int64_t or uint64_t.
template <typename T>
struct Integer {
  static T Add(T a, T b) { return static_cast<T>(uint64_t(a) + uint64_t(b)); }
  static T Sub(T a, T b) { return static_cast<T>(uint64_t(a) - uint64_t(b)); }
  static T Mul(T a, T b) { return static_cast<T>(uint64_t(a) * uint64_t(b)); }
  static T Max(T a, T b) { return a > b ? a : b; }
  static T Min(T a, T b) { return a < b ? a : b; }
  static T Neg(T x) { return static_cast<T>(-uint64_t(x)); }
  static T Abs(T x) { return IsNegative(x) ? Neg(x) : x; }
  static T Square(T x) { return Mul(x, x); }
  static T Sign(T x) { return IsNegative(x) ? T(-1) : T(x != 0); }
  static T Relu(T x) { return IsNegative(x) ? 0 : x; }
  static T Same(T x) { return x; }

  static T FloorDiv(T a, T b) {
    if (IsMinusOne(b)) return Neg(a);  // the least integer has no opposite
    const T quotient = a / b;
    return IsNegative(a % b) != IsNegative(b) && a % b != 0 ? quotient - 1 : quotient;
  }
  static T FloorMod(T a, T b) {
    if (IsMinusOne(b)) return 0;
    const T rest = a % b;
    return rest != 0 && IsNegative(rest) != IsNegative(b) ? rest + b : rest;
  }
  static T Pow(T base, T exponent) {
    if (IsNegative(exponent)) {
      if (IsMinusOne(base)) return (exponent & 1) != 0 ? base : T(1);
      return base == 1 ? T(1) : T(0);
    }
    T power = 1;
    for (T square = base; exponent != 0; exponent >>= 1) {
      if ((exponent & 1) != 0) power = Mul(power, square);
      square = Mul(square, square);
    }
    return power;
  }

  static uint8_t Equal(T a, T b) { return a == b; }
  static uint8_t NotEqual(T a, T b) { return a != b; }
  static uint8_t Less(T a, T b) { return a < b; }
  static uint8_t LessEqual(T a, T b) { return a <= b; }
  static uint8_t Greater(T a, T b) { return a > b; }
  static uint8_t GreaterEqual(T a, T b) { return a >= b; }

 private:
  static bool IsNegative(T x) { return std::is_signed_v<T> && x < 0; }
  static bool IsMinusOne(T x) { return std::is_signed_v<T> && x == T(-1); }
};

template <typename T>
constexpr FormulaRow kIntegerRows[] = {
    {Formula::kAdd, Pairs<T, T, Integer<T>::Add>},
    {Formula::kSub, Pairs<T, T, Integer<T>::Sub>},
    {Formula::kMul, Pairs<T, T, Integer<T>::Mul>},
    {Formula::kDiv, Pairs<T, T, Integer<T>::FloorDiv>},
    {Formula::kFloorDiv, Pairs<T, T, Integer<T>::FloorDiv>},
    {Formula::kFloorMod, Pairs<T, T, Integer<T>::FloorMod>},
    {Formula::kPow, Pairs<T, T, Integer<T>::Pow>},
    {Formula::kMax, Pairs<T, T, Integer<T>::Max>},
    {Formula::kMin, Pairs<T, T, Integer<T>::Min>},
    {Formula::kNeg, Each<T, T, Integer<T>::Neg>},
    {Formula::kAbs, Each<T, T, Integer<T>::Abs>},
    {Formula::kSquare, Each<T, T, Integer<T>::Square>},
    {Formula::kSign, Each<T, T, Integer<T>::Sign>},
    {Formula::kFloor, Each<T, T, Integer<T>::Same>},
    {Formula::kCeil, Each<T, T, Integer<T>::Same>},
    {Formula::kRelu, Each<T, T, Integer<T>::Relu>},
    {Formula::kEqual, Pairs<T, uint8_t, Integer<T>::Equal>},
    {Formula::kNotEqual, Pairs<T, uint8_t, Integer<T>::NotEqual>},
    {Formula::kLess, Pairs<T, uint8_t, Integer<T>::Less>},
    {Formula::kLessEqual, Pairs<T, uint8_t, Integer<T>::LessEqual>},
    {Formula::kGreater, Pairs<T, uint8_t, Integer<T>::Greater>},
    {Formula::kGreaterEqual, Pairs<T, uint8_t, Integer<T>::GreaterEqual>},
};

// Bool is a byte; any byte but 0 is true.
uint8_t Or(uint8_t a, uint8_t b) {
  return (a | b) != 0;
}
uint8_t And(uint8_t a, uint8_t b) {
  return (a != 0) & (b != 0);
}
uint8_t Xor(uint8_t a, uint8_t b) {
  return (a != 0) ^ (b != 0);
}
uint8_t Same(uint8_t a, uint8_t b) {
  return (a != 0) == (b != 0);
}
uint8_t Less(uint8_t a, uint8_t b) {
  return (a != 0) < (b != 0);
}
uint8_t LessEqual(uint8_t a, uint8_t b) {
  return (a != 0) <= (b != 0);
}
uint8_t Greater(uint8_t a, uint8_t b) {
  return Less(b, a);
}
uint8_t GreaterEqual(uint8_t a, uint8_t b) {
  return LessEqual(b, a);
}
uint8_t Not(uint8_t x) {
  return x == 0;
}
uint8_t Truth(uint8_t x) {
  return x != 0;
}

constexpr FormulaRow kBoolRows[] = {
    {Formula::kAdd, Pairs<uint8_t, uint8_t, Or>},
    {Formula::kSub, Pairs<uint8_t, uint8_t, Xor>},
    {Formula::kMul, Pairs<uint8_t, uint8_t, And>},
    {Formula::kMax, Pairs<uint8_t, uint8_t, Or>},
    {Formula::kMin, Pairs<uint8_t, uint8_t, And>},
    {Formula::kAnd, Pairs<uint8_t, uint8_t, And>},
    {Formula::kOr, Pairs<uint8_t, uint8_t, Or>},
    {Formula::kNot, Each<uint8_t, uint8_t, Not>},
    {Formula::kAbs, Each<uint8_t, uint8_t, Truth>},
    {Formula::kEqual, Pairs<uint8_t, uint8_t, Same>},
    {Formula::kNotEqual, Pairs<uint8_t, uint8_t, Xor>},
    {Formula::kLess, Pairs<uint8_t, uint8_t, Less>},
    {Formula::kLessEqual, Pairs<uint8_t, uint8_t, LessEqual>},
    {Formula::kGreater, Pairs<uint8_t, uint8_t, Greater>},
    {Formula::kGreaterEqual, Pairs<uint8_t, uint8_t, GreaterEqual>},
};

}  // namespace

BlockFn IntegerBlock(Formula formula, bool is_signed) {
  return is_signed ? FindBlock(kIntegerRows<int64_t>, formula)
                   : FindBlock(kIntegerRows<uint64_t>, formula);
}

BlockFn BoolBlock(Formula formula) {
  return FindBlock(kBoolRows, formula);
}

}  // namespace npumesh
