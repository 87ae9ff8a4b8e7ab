// Formulas on 64-bit integers, which serve all narrower ones too, and on bool.
//
// Integers wrap modulo 2^64, so sums and products are computed unsigned. The driver refuses zero
// divisors before kDiv, kFloorDiv and kFloorMod run. Div rounds down as the vendor's kernels do
// (docs/onnx.md); TruncateDiv is another operator.
#include <functional>
#include <type_traits>

#include "graph/ops/toolbox/formula/formula_loop.h"
#include "graph/ops/toolbox/formula/formula_loops.h"

namespace npumesh {
namespace {

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
    {Formula::kAdd, PairsOf<T>([](T a, T b) { return Integer<T>::Add(a, b); })},
    {Formula::kSub, PairsOf<T>([](T a, T b) { return Integer<T>::Sub(a, b); })},
    {Formula::kMul, PairsOf<T>([](T a, T b) { return Integer<T>::Mul(a, b); })},
    {Formula::kDiv, PairsOf<T>([](T a, T b) { return Integer<T>::FloorDiv(a, b); })},
    {Formula::kFloorDiv, PairsOf<T>([](T a, T b) { return Integer<T>::FloorDiv(a, b); })},
    {Formula::kFloorMod, PairsOf<T>([](T a, T b) { return Integer<T>::FloorMod(a, b); })},
    {Formula::kPow, PairsOf<T>([](T a, T b) { return Integer<T>::Pow(a, b); })},
    {Formula::kMax, PairsOf<T>([](T a, T b) { return a > b ? a : b; })},
    {Formula::kMin, PairsOf<T>([](T a, T b) { return a < b ? a : b; })},
    {Formula::kNeg, EachOf<T>([](T x) { return Integer<T>::Neg(x); })},
    {Formula::kAbs, EachOf<T>([](T x) { return Integer<T>::Abs(x); })},
    {Formula::kSquare, EachOf<T>([](T x) { return Integer<T>::Mul(x, x); })},
    {Formula::kSign, EachOf<T>([](T x) { return Integer<T>::Sign(x); })},
    {Formula::kFloor, EachOf<T>([](T x) { return x; })},
    {Formula::kCeil, EachOf<T>([](T x) { return x; })},
    {Formula::kRelu, EachOf<T>([](T x) { return Integer<T>::Relu(x); })},
};

// Bool is a byte; any byte but 0 is true.
struct Truth {
  uint8_t byte;

  operator bool() const { return byte != 0; }  // NOLINT: implicit, as formulas take it
};

constexpr FormulaRow kBoolRows[] = {
    {Formula::kAdd, PairsOf<Truth, uint8_t>(std::bit_or<bool>())},
    {Formula::kSub, PairsOf<Truth, uint8_t>(std::bit_xor<bool>())},
    {Formula::kMul, PairsOf<Truth, uint8_t>(std::bit_and<bool>())},
    {Formula::kMax, PairsOf<Truth, uint8_t>(std::bit_or<bool>())},
    {Formula::kMin, PairsOf<Truth, uint8_t>(std::bit_and<bool>())},
    {Formula::kAnd, PairsOf<Truth, uint8_t>(std::bit_and<bool>())},
    {Formula::kOr, PairsOf<Truth, uint8_t>(std::bit_or<bool>())},
    {Formula::kNot, EachOf<Truth, uint8_t>(std::logical_not<bool>())},
    {Formula::kAbs, EachOf<Truth, uint8_t>(std::identity())},
};

}  // namespace

BlockFn IntegerBlock(Formula formula, bool is_signed) {
  if (!is_signed) return FindBlockOf<uint64_t>(kIntegerRows<uint64_t>, formula);
  const BlockFn lanes = LanesOfFormula(formula, LoopType::kLong);
  return lanes != nullptr ? lanes : FindBlock(kIntegerRows<int64_t>, formula);
}

BlockFn BoolBlock(Formula formula) {
  return FindBlockOf<Truth>(kBoolRows, formula);
}

}  // namespace npumesh
