// Formulas on doubles that are also loop programs: a function template over the number, called with
// doubles, computes; called with LoopNumbers, it writes the instructions that compute the same
// bits.
//
//   [](Real auto x, const C& c) { return Where(x > 0, x, c[0] * x); }
//
// A formula has no branches on its arguments: Where computes both values and takes one.
//
// Thread-safety: as the builder's.
#ifndef NPUMESH_GRAPH_OPS_CORE_LOOP_NUMBER_H_
#define NPUMESH_GRAPH_OPS_CORE_LOOP_NUMBER_H_

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "graph/ops/core/loop_program.h"

namespace npumesh {

// A bool of a program.
struct LoopTruth {
  LoopBuilder* loop = nullptr;
  LoopValue value = -1;
};

// A double of a program, or a constant.
struct LoopNumber {
  LoopNumber(double constant_value) : constant(constant_value) {}  // NOLINT: implicit
  LoopNumber(LoopBuilder& builder, LoopValue number) : loop(&builder), value(number) {}

  LoopValue In(LoopBuilder& builder) const {
    return loop == nullptr ? builder.Constant(constant, LoopType::kDouble) : value;
  }

  LoopBuilder* loop = nullptr;  // null: a constant
  LoopValue value = -1;
  double constant = 0;
};

// The values of what a formula gives: a number, a bool, or a std::array of numbers.
inline std::vector<LoopValue> ValuesOf(LoopBuilder& loop, const LoopNumber& result) {
  return {result.In(loop)};
}
inline std::vector<LoopValue> ValuesOf(LoopBuilder& /*loop*/, const LoopTruth& result) {
  return {result.value};
}
template <size_t kResults>
std::vector<LoopValue> ValuesOf(LoopBuilder& loop,
                                const std::array<LoopNumber, kResults>& results) {
  std::vector<LoopValue> values;
  for (const LoopNumber& result : results) values.push_back(result.In(loop));
  return values;
}

// What formulas are templates over.
template <typename T>
concept Real = std::same_as<T, double> || std::same_as<T, LoopNumber>;

// What an instruction makes of numbers. REQUIRES: one of them is no constant.
inline LoopNumber Emit(LoopOp op, const LoopNumber& a) {
  return {*a.loop, a.loop->Emit(op, {a.value})};
}
inline LoopBuilder& BuilderOf(const LoopNumber& a, const LoopNumber& b) {
  return a.loop == nullptr ? *b.loop : *a.loop;
}
inline LoopNumber Emit(LoopOp op, const LoopNumber& a, const LoopNumber& b) {
  LoopBuilder& loop = BuilderOf(a, b);
  return {loop, loop.Emit(op, {a.In(loop), b.In(loop)})};
}
inline LoopTruth Compare(LoopOp op, const LoopNumber& a, const LoopNumber& b) {
  LoopBuilder& loop = BuilderOf(a, b);
  return {&loop, loop.Emit(op, {a.In(loop), b.In(loop)})};
}

inline LoopNumber operator+(const LoopNumber& a, const LoopNumber& b) {
  return Emit(LoopOp::kAdd, a, b);
}
inline LoopNumber operator-(const LoopNumber& a, const LoopNumber& b) {
  return Emit(LoopOp::kSub, a, b);
}
inline LoopNumber operator*(const LoopNumber& a, const LoopNumber& b) {
  return Emit(LoopOp::kMul, a, b);
}
inline LoopNumber operator/(const LoopNumber& a, const LoopNumber& b) {
  return Emit(LoopOp::kDiv, a, b);
}
inline LoopNumber operator-(const LoopNumber& a) {
  return Emit(LoopOp::kNeg, a);
}
inline LoopTruth operator<(const LoopNumber& a, const LoopNumber& b) {
  return Compare(LoopOp::kLess, a, b);
}
inline LoopTruth operator<=(const LoopNumber& a, const LoopNumber& b) {
  return Compare(LoopOp::kLessEqual, a, b);
}
inline LoopTruth operator>(const LoopNumber& a, const LoopNumber& b) {
  return Compare(LoopOp::kGreater, a, b);
}
inline LoopTruth operator>=(const LoopNumber& a, const LoopNumber& b) {
  return Compare(LoopOp::kGreaterEqual, a, b);
}
inline LoopTruth operator==(const LoopNumber& a, const LoopNumber& b) {
  return Compare(LoopOp::kEqual, a, b);
}
inline LoopTruth operator!=(const LoopNumber& a, const LoopNumber& b) {
  return Compare(LoopOp::kNotEqual, a, b);
}

// Of flags, which have no short circuit: both sides are computed.
inline bool Both(bool a, bool b) {
  return a && b;
}
inline bool Either(bool a, bool b) {
  return a || b;
}
inline LoopTruth Both(const LoopTruth& a, const LoopTruth& b) {
  return {a.loop, a.loop->Emit(LoopOp::kAnd, {a.value, b.value})};
}
inline LoopTruth Either(const LoopTruth& a, const LoopTruth& b) {
  return {a.loop, a.loop->Emit(LoopOp::kOr, {a.value, b.value})};
}

// The first value where the flag holds, the other elsewhere.
inline double Where(bool flag, double a, double b) {
  return flag ? a : b;
}
inline LoopNumber Where(const LoopTruth& flag, const LoopNumber& a, const LoopNumber& b) {
  LoopBuilder& loop = *flag.loop;
  return {loop, loop.Emit(LoopOp::kSelect, {flag.value, a.In(loop), b.In(loop)})};
}

// The other value is computed where it is taken, if it costs much.
template <typename F>
requires std::is_invocable_v<F>
auto Where(bool flag, double a, F other) {
  return flag ? a : other();
}
template <typename F>
requires std::is_invocable_v<F>
auto Where(const LoopTruth& flag, const LoopNumber& a, F other) {
  return Where(flag, a, LoopNumber(other()));
}

// The value that is taken is computed alone, if both cost much.
template <typename F, typename G>
requires(std::is_invocable_v<F>&& std::is_invocable_v<G>) auto Where(bool flag, F one, G other) {
  return flag ? one() : other();
}
template <typename F, typename G>
requires(std::is_invocable_v<F>&& std::is_invocable_v<G>) auto Where(const LoopTruth& flag, F one,
                                                                     G other) {
  return Where(flag, LoopNumber(one()), LoopNumber(other()));
}

// To the nearest whole number, ties to even: std::nearbyint, which calls the C library on
// processors without SSE4.1. Adding 2^52 leaves no digits after the point.
inline double NearestEven(double x) {
  constexpr double kWhole = 0x1p52;  // from here on every double is whole
  const double magnitude = std::fabs(x);
  return magnitude < kWhole ? std::copysign((magnitude + kWhole) - kWhole, x) : x;
}

// Functions that are an instruction each, of the C library's doubles.
#define NPUMESH_LOOP_FUNCTION(name, op, call)   \
  inline double name(double x) {                \
    return call(x);                             \
  }                                             \
  inline LoopNumber name(const LoopNumber& x) { \
    return Emit(LoopOp::op, x);                 \
  }
NPUMESH_LOOP_FUNCTION(Magnitude, kAbs, std::fabs)
NPUMESH_LOOP_FUNCTION(RootOf, kSqrt, std::sqrt)
NPUMESH_LOOP_FUNCTION(Below, kFloor, std::floor)
NPUMESH_LOOP_FUNCTION(Above, kCeil, std::ceil)
NPUMESH_LOOP_FUNCTION(RintOf, kRint, NearestEven)
NPUMESH_LOOP_FUNCTION(Expm1Of, kExpm1, std::expm1)
NPUMESH_LOOP_FUNCTION(Log1pOf, kLog1p, std::log1p)
NPUMESH_LOOP_FUNCTION(TanOf, kTan, std::tan)
NPUMESH_LOOP_FUNCTION(SinhOf, kSinh, std::sinh)
NPUMESH_LOOP_FUNCTION(CoshOf, kCosh, std::cosh)
NPUMESH_LOOP_FUNCTION(TanhOf, kTanh, std::tanh)
NPUMESH_LOOP_FUNCTION(AsinOf, kAsin, std::asin)
NPUMESH_LOOP_FUNCTION(AcosOf, kAcos, std::acos)
NPUMESH_LOOP_FUNCTION(AtanOf, kAtan, std::atan)
NPUMESH_LOOP_FUNCTION(AsinhOf, kAsinh, std::asinh)
NPUMESH_LOOP_FUNCTION(AcoshOf, kAcosh, std::acosh)
NPUMESH_LOOP_FUNCTION(AtanhOf, kAtanh, std::atanh)
NPUMESH_LOOP_FUNCTION(ErfOf, kErf, std::erf)
NPUMESH_LOOP_FUNCTION(ErfcOf, kErfc, std::erfc)
#undef NPUMESH_LOOP_FUNCTION

inline double ExpOf(double x) {
  return std::exp(x);
}
inline LoopNumber ExpOf(const LoopNumber& x) {
  return {*x.loop, x.loop->Emit(LoopOp::kExp, {x.value}, {-1, 1, 0})};
}
inline double LogOf(double x) {
  return std::log(x);
}
inline LoopNumber LogOf(const LoopNumber& x) {
  return {*x.loop, x.loop->Emit(LoopOp::kLog, {x.value}, {-1, 1, 0})};
}
// Numbers of a row, from its elements: of programs alone.
inline LoopNumber RowTotal(const LoopNumber& x) {
  return Emit(LoopOp::kRowTotal, x);
}
inline LoopNumber RowLargest(const LoopNumber& x) {
  return Emit(LoopOp::kRowLargest, x);
}
inline LoopNumber RowLeast(const LoopNumber& x) {
  return Emit(LoopOp::kRowLeast, x);
}

inline double Log2Of(double x) {
  return std::log2(x);
}
inline LoopNumber Log2Of(const LoopNumber& x) {
  return {*x.loop, x.loop->Emit(LoopOp::kLog, {x.value}, {2, 1, 0})};
}
inline double Log10Of(double x) {
  return std::log10(x);
}
inline LoopNumber Log10Of(const LoopNumber& x) {
  return {*x.loop, x.loop->Emit(LoopOp::kLog, {x.value}, {10, 1, 0})};
}
#define NPUMESH_LOOP_PAIR(name, op, call)                            \
  inline double name(double a, double b) {                           \
    return call(a, b);                                               \
  }                                                                  \
  inline LoopNumber name(const LoopNumber& a, const LoopNumber& b) { \
    return Emit(LoopOp::op, a, b);                                   \
  }
NPUMESH_LOOP_PAIR(Atan2Of, kAtan2, std::atan2)
NPUMESH_LOOP_PAIR(ModOf, kMod, std::fmod)
NPUMESH_LOOP_PAIR(PowOf, kPow, std::pow)
#undef NPUMESH_LOOP_PAIR

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_LOOP_NUMBER_H_
