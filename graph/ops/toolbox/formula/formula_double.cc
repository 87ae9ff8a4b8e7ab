// Formulas on double: the C library, element by element.
#include <cmath>

#include "graph/ops/toolbox/formula/formula.h"

namespace npumesh {
namespace {

template <double (*kFunction)(double)>
void Each(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const double* x = static_cast<const double*>(in[0]);
  double* y = static_cast<double*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = kFunction(x[i]);
}

template <double (*kFunction)(double, const FormulaParams&)>
void EachWith(const void* const* in, void* out, size_t count, const FormulaParams& params) {
  const double* x = static_cast<const double*>(in[0]);
  double* y = static_cast<double*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = kFunction(x[i], params);
}

template <typename To, To (*kFunction)(double, double)>
void Pairs(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const double* a = static_cast<const double*>(in[0]);
  const double* b = static_cast<const double*>(in[1]);
  To* y = static_cast<To*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = kFunction(a[i], b[i]);
}

double Add(double a, double b) {
  return a + b;
}
double Sub(double a, double b) {
  return a - b;
}
double Mul(double a, double b) {
  return a * b;
}
double Div(double a, double b) {
  return a / b;
}
double Pow(double a, double b) {
  return std::pow(a, b);
}
// Of zeros of both signs the first one.
double Max(double a, double b) {
  return a >= b || a != a ? a : b;
}
double Min(double a, double b) {
  return a <= b || a != a ? a : b;
}
// The quotient by an infinity of the other sign is below 0, however little.
double FloorDiv(double a, double b) {
  if (std::isinf(b) && std::isfinite(a) && a != 0 && (a < 0) != (b < 0)) return -1;
  return std::floor(a / b);
}
// A rest of 0 has the sign of the divisor, too.
double FloorMod(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

uint8_t Equal(double a, double b) {
  return a == b;
}
uint8_t NotEqual(double a, double b) {
  return a != b;
}
uint8_t Less(double a, double b) {
  return a < b;
}
uint8_t LessEqual(double a, double b) {
  return a <= b;
}
uint8_t Greater(double a, double b) {
  return a > b;
}
uint8_t GreaterEqual(double a, double b) {
  return a >= b;
}

double Sqrt(double x) {
  return std::sqrt(x);
}
double Rsqrt(double x) {
  return 1 / std::sqrt(x);
}
double Neg(double x) {
  return -x;
}
double Reciprocal(double x) {
  return 1 / x;
}
double Abs(double x) {
  return std::fabs(x);
}
double Square(double x) {
  return x * x;
}
double Sign(double x) {
  return x > 0 ? 1.0 : (x < 0 ? -1.0 : x);
}
double Floor(double x) {
  return std::floor(x);
}
double Ceil(double x) {
  return std::ceil(x);
}
double Expm1(double x) {
  return std::expm1(x);
}
double Log1p(double x) {
  return std::log1p(x);
}
double Sin(double x) {
  return std::sin(x);
}
double Cos(double x) {
  return std::cos(x);
}
double Tanh(double x) {
  return std::tanh(x);
}
double Erf(double x) {
  return std::erf(x);
}
double Relu(double x) {
  return x <= 0 ? 0.0 : x;
}
double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double Scale(double x, const FormulaParams& params) {
  return x * params[0];
}

double Exp(double x, const FormulaParams& params) {
  const double power = params[1] * x + params[2];
  return params[0] == -1.0f ? std::exp(power) : std::pow(params[0], power);
}

double Log(double x, const FormulaParams& params) {
  const double value = params[1] * x + params[2];
  if (params[0] == 2.0f) return std::log2(value);
  if (params[0] == 10.0f) return std::log10(value);
  return params[0] == -1.0f ? std::log(value) : std::log(value) / std::log(double{params[0]});
}

constexpr FormulaRow kRows[] = {
    {Formula::kAdd, Pairs<double, Add>},
    {Formula::kSub, Pairs<double, Sub>},
    {Formula::kMul, Pairs<double, Mul>},
    {Formula::kDiv, Pairs<double, Div>},
    {Formula::kPow, Pairs<double, Pow>},
    {Formula::kMax, Pairs<double, Max>},
    {Formula::kMin, Pairs<double, Min>},
    {Formula::kFloorDiv, Pairs<double, FloorDiv>},
    {Formula::kFloorMod, Pairs<double, FloorMod>},
    {Formula::kEqual, Pairs<uint8_t, Equal>},
    {Formula::kNotEqual, Pairs<uint8_t, NotEqual>},
    {Formula::kLess, Pairs<uint8_t, Less>},
    {Formula::kLessEqual, Pairs<uint8_t, LessEqual>},
    {Formula::kGreater, Pairs<uint8_t, Greater>},
    {Formula::kGreaterEqual, Pairs<uint8_t, GreaterEqual>},
    {Formula::kScale, EachWith<Scale>},
    {Formula::kSqrt, Each<Sqrt>},
    {Formula::kRsqrt, Each<Rsqrt>},
    {Formula::kNeg, Each<Neg>},
    {Formula::kReciprocal, Each<Reciprocal>},
    {Formula::kAbs, Each<Abs>},
    {Formula::kSquare, Each<Square>},
    {Formula::kSign, Each<Sign>},
    {Formula::kFloor, Each<Floor>},
    {Formula::kCeil, Each<Ceil>},
    {Formula::kExp, EachWith<Exp>},
    {Formula::kLog, EachWith<Log>},
    {Formula::kExpm1, Each<Expm1>},
    {Formula::kLog1p, Each<Log1p>},
    {Formula::kSin, Each<Sin>},
    {Formula::kCos, Each<Cos>},
    {Formula::kTanh, Each<Tanh>},
    {Formula::kErf, Each<Erf>},
    {Formula::kRelu, Each<Relu>},
    {Formula::kSigmoid, Each<Sigmoid>},
};

}  // namespace

BlockFn DoubleBlock(Formula formula) {
  return FindBlock(kRows, formula);
}

}  // namespace npumesh
