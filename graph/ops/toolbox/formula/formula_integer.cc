// Formulas on 64-bit integers, which serve all narrower ones too, and on bool.
//
// Integers wrap modulo 2^64, so sums and products are computed unsigned. The driver refuses zero
// divisors before kDiv, kFloorDiv and kFloorMod run.
#include <functional>
#include <type_traits>

#include "graph/ops/toolbox/formula/formula.h"

namespace npumesh {
namespace {

template <typename T, typename F>
constexpr BlockFn EachInteger(F) {
  return [](const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
    const T* x = static_cast<const T*>(in[0]);
    T* y = static_cast<T*>(out);
    for (size_t i = 0; i < count; ++i) y[i] = F()(x[i]);
  };
}

template <typename T, typename To = T, typename F>
constexpr BlockFn IntegerPairs(F) {
  return [](const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
    const T* a = static_cast<const T*>(in[0]);
    const T* b = static_cast<const T*>(in[1]);
    To* y = static_cast<To*>(out);
    for (size_t i = 0; i < count; ++i) y[i] = F()(a[i], b[i]);
  };
}

// T is int64_t or uint64_t.
template <typename T>
struct Integer {
  static T Add(T a, T b) { return static_cast<T>(uint64_t(a) + uint64_t(b)); }
  static T Sub(T a, T b) { return static_cast<T>(uint64_t(a) - uint64_t(b)); }
  static T Mul(T a, T b) { return static_cast<T>(uint64_t(a) * uint64_t(b)); }
  static T Neg(T x) { return static_cast<T>(-uint64_t(x)); }
  static T Abs(T x) { return IsNegative(x) ? Neg(x) : x; }
  static T Sign(T x) { return IsNegative(x) ? T(-1) : T(x != 0); }
  static T Relu(T x) { return IsNegative(x) ? 0 : x; }

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

 private:
  static bool IsNegative(T x) { return std::is_signed_v<T> && x < 0; }
  static bool IsMinusOne(T x) { return std::is_signed_v<T> && x == T(-1); }
};

template <typename T>
constexpr FormulaRow kIntegerRows[] = {
    {Formula::kAdd, IntegerPairs<T>([](T a, T b) { return Integer<T>::Add(a, b); })},
    {Formula::kSub, IntegerPairs<T>([](T a, T b) { return Integer<T>::Sub(a, b); })},
    {Formula::kMul, IntegerPairs<T>([](T a, T b) { return Integer<T>::Mul(a, b); })},
    {Formula::kDiv, IntegerPairs<T>([](T a, T b) { return Integer<T>::FloorDiv(a, b); })},
    {Formula::kFloorDiv, IntegerPairs<T>([](T a, T b) { return Integer<T>::FloorDiv(a, b); })},
    {Formula::kFloorMod, IntegerPairs<T>([](T a, T b) { return Integer<T>::FloorMod(a, b); })},
    {Formula::kPow, IntegerPairs<T>([](T a, T b) { return Integer<T>::Pow(a, b); })},
    {Formula::kMax, IntegerPairs<T>([](T a, T b) { return a > b ? a : b; })},
    {Formula::kMin, IntegerPairs<T>([](T a, T b) { return a < b ? a : b; })},
    {Formula::kNeg, EachInteger<T>([](T x) { return Integer<T>::Neg(x); })},
    {Formula::kAbs, EachInteger<T>([](T x) { return Integer<T>::Abs(x); })},
    {Formula::kSquare, EachInteger<T>([](T x) { return Integer<T>::Mul(x, x); })},
    {Formula::kSign, EachInteger<T>([](T x) { return Integer<T>::Sign(x); })},
    {Formula::kFloor, EachInteger<T>([](T x) { return x; })},
    {Formula::kCeil, EachInteger<T>([](T x) { return x; })},
    {Formula::kRelu, EachInteger<T>([](T x) { return Integer<T>::Relu(x); })},
    {Formula::kEqual, IntegerPairs<T, uint8_t>(std::equal_to<T>())},
    {Formula::kNotEqual, IntegerPairs<T, uint8_t>(std::not_equal_to<T>())},
    {Formula::kLess, IntegerPairs<T, uint8_t>(std::less<T>())},
    {Formula::kLessEqual, IntegerPairs<T, uint8_t>(std::less_equal<T>())},
    {Formula::kGreater, IntegerPairs<T, uint8_t>(std::greater<T>())},
    {Formula::kGreaterEqual, IntegerPairs<T, uint8_t>(std::greater_equal<T>())},
};

// Bool is a byte; any byte but 0 is true.
template <typename F>
constexpr BlockFn Bools(F) {
  return IntegerPairs<uint8_t>([](uint8_t a, uint8_t b) { return uint8_t{F()(a != 0, b != 0)}; });
}

constexpr FormulaRow kBoolRows[] = {
    {Formula::kAdd, Bools(std::bit_or<bool>())},
    {Formula::kSub, Bools(std::bit_xor<bool>())},
    {Formula::kMul, Bools(std::bit_and<bool>())},
    {Formula::kMax, Bools(std::bit_or<bool>())},
    {Formula::kMin, Bools(std::bit_and<bool>())},
    {Formula::kAnd, Bools(std::bit_and<bool>())},
    {Formula::kOr, Bools(std::bit_or<bool>())},
    {Formula::kNot, EachInteger<uint8_t>([](uint8_t x) { return uint8_t{x == 0}; })},
    {Formula::kAbs, EachInteger<uint8_t>([](uint8_t x) { return uint8_t{x != 0}; })},
    {Formula::kEqual, Bools(std::equal_to<bool>())},
    {Formula::kNotEqual, Bools(std::not_equal_to<bool>())},
    {Formula::kLess, Bools(std::less<bool>())},
    {Formula::kLessEqual, Bools(std::less_equal<bool>())},
    {Formula::kGreater, Bools(std::greater<bool>())},
    {Formula::kGreaterEqual, Bools(std::greater_equal<bool>())},
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
