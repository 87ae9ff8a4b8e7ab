// Integers of 64 bits, which serve quotients, remainders and powers of all narrower ones too, and
// bool. The block machine refuses zero divisors before a quotient or a remainder is computed. Div
// rounds down as the vendor's kernels do (docs/onnx.md); TruncateDiv is another operator.
#include <functional>
#include <type_traits>

#include "graph/ops/toolbox/machine/calls.h"

namespace npumesh {
namespace {

// T is int64_t or uint64_t.
template <typename T>
struct Integer {
  static T Mul(T a, T b) { return static_cast<T>(uint64_t(a) * uint64_t(b)); }
  static T Neg(T x) { return static_cast<T>(-uint64_t(x)); }

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

template <typename T, LoopType kType>
constexpr ElementCall kOfWhole[] = {
    {LoopOp::kDiv, kType, PairsOf<T>([](T a, T b) { return Integer<T>::FloorDiv(a, b); })},
    {LoopOp::kFloorDiv, kType, PairsOf<T>([](T a, T b) { return Integer<T>::FloorDiv(a, b); })},
    {LoopOp::kFloorMod, kType, PairsOf<T>([](T a, T b) { return Integer<T>::FloorMod(a, b); })},
    {LoopOp::kPow, kType, PairsOf<T>([](T a, T b) { return Integer<T>::Pow(a, b); })},
    {LoopOp::kFloor, kType, EachOf<T>(std::identity())},
    {LoopOp::kCeil, kType, EachOf<T>(std::identity())},
};

// The comparisons of a type with an order.
template <typename T, LoopType kType>
constexpr ElementCall kRelations[] = {
    {LoopOp::kEqual, kType, PairsOf<T, uint8_t>(std::equal_to<>())},
    {LoopOp::kNotEqual, kType, PairsOf<T, uint8_t>(std::not_equal_to<>())},
    {LoopOp::kLess, kType, PairsOf<T, uint8_t>(std::less<>())},
    {LoopOp::kLessEqual, kType, PairsOf<T, uint8_t>(std::less_equal<>())},
    {LoopOp::kGreater, kType, PairsOf<T, uint8_t>(std::greater<>())},
    {LoopOp::kGreaterEqual, kType, PairsOf<T, uint8_t>(std::greater_equal<>())},
};

using U = uint64_t;
constexpr LoopType kUlong = LoopType::kUlong;
constexpr ElementCall kOfUnsigned[] = {
    {LoopOp::kAdd, kUlong, PairsOf<U>(std::plus<>())},
    {LoopOp::kSub, kUlong, PairsOf<U>(std::minus<>())},
    {LoopOp::kMul, kUlong, PairsOf<U>(std::multiplies<>())},
    {LoopOp::kMax, kUlong, PairsOf<U>([](U a, U b) { return a > b ? a : b; })},
    {LoopOp::kMin, kUlong, PairsOf<U>([](U a, U b) { return a < b ? a : b; })},
    {LoopOp::kNeg, kUlong, EachOf<U>(std::negate<>())},
    {LoopOp::kAbs, kUlong, EachOf<U>(std::identity())},
    {LoopOp::kSquare, kUlong, EachOf<U>([](U x) { return x * x; })},
    {LoopOp::kSign, kUlong, EachOf<U>([](U x) { return U(x != 0); })},
    {LoopOp::kRelu, kUlong, EachOf<U>(std::identity())},
    {LoopOp::kRelu6, kUlong, EachOf<U>([](U x) { return x > 6 ? U{6} : x; })},
};

// Bool is a byte; any byte but 0 is true.
struct Truth {
  uint8_t byte;

  operator bool() const { return byte != 0; }  // NOLINT: implicit, as functions take it
};

constexpr LoopType kBool = LoopType::kBool;
constexpr ElementCall kOfBool[] = {
    {LoopOp::kAdd, kBool, PairsOf<Truth, uint8_t>(std::bit_or<bool>())},
    {LoopOp::kSub, kBool, PairsOf<Truth, uint8_t>(std::bit_xor<bool>())},
    {LoopOp::kMul, kBool, PairsOf<Truth, uint8_t>(std::bit_and<bool>())},
    {LoopOp::kMax, kBool, PairsOf<Truth, uint8_t>(std::bit_or<bool>())},
    {LoopOp::kMin, kBool, PairsOf<Truth, uint8_t>(std::bit_and<bool>())},
    {LoopOp::kAbs, kBool, EachOf<Truth, uint8_t>(std::identity())},
};

constexpr CallTable kIntegerCalls[] = {
    kOfWhole<int64_t, LoopType::kLong>,
    kOfWhole<U, kUlong>,
    kOfUnsigned,
    kRelations<U, kUlong>,
    kRelations<Truth, kBool>,
    kOfBool,
};

}  // namespace

std::span<const CallTable> IntegerCalls() {
  return kIntegerCalls;
}

}  // namespace npumesh
