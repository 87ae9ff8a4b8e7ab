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

#include <cmath>
#include <concepts>
#include <type_traits>

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
