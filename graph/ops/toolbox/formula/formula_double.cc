// Formulas on double: the C library, element by element.
#include <cmath>
#include <functional>

#include "graph/ops/toolbox/formula/formula_loops.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {
namespace {

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

constexpr FormulaRow kDoubleRows[] = {
    {Formula::kAdd, PairsOf<double>(std::plus<double>())},
    {Formula::kSub, PairsOf<double>(std::minus<double>())},
    {Formula::kMul, PairsOf<double>(std::multiplies<double>())},
    {Formula::kDiv, PairsOf<double>(std::divides<double>())},
    {Formula::kPow, PairsOf<double>([](double a, double b) { return std::pow(a, b); })},
    // Of zeros of both signs the first one.
    {Formula::kMax, PairsOf<double>([](double a, double b) { return a >= b || a != a ? a : b; })},
    {Formula::kMin, PairsOf<double>([](double a, double b) { return a <= b || a != a ? a : b; })},
    {Formula::kFloorDiv, PairsOf<double>([](double a, double b) { return FloorDiv(a, b); })},
    {Formula::kFloorMod, PairsOf<double>([](double a, double b) { return FloorMod(a, b); })},
    {Formula::kScale,
     EachOf<double>([](double x, const FormulaParams& params) { return x * params[0]; })},
    {Formula::kSqrt, EachOf<double>([](double x) { return std::sqrt(x); })},
    {Formula::kRsqrt, EachOf<double>([](double x) { return 1 / std::sqrt(x); })},
    {Formula::kNeg, EachOf<double>([](double x) { return -x; })},
    {Formula::kReciprocal, EachOf<double>([](double x) { return 1 / x; })},
    {Formula::kAbs, EachOf<double>([](double x) { return std::fabs(x); })},
    {Formula::kSquare, EachOf<double>([](double x) { return x * x; })},
    {Formula::kSign, EachOf<double>([](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : x); })},
    {Formula::kFloor, EachOf<double>([](double x) { return std::floor(x); })},
    {Formula::kCeil, EachOf<double>([](double x) { return std::ceil(x); })},
    {Formula::kExp,
     EachOf<double>([](double x, const FormulaParams& params) { return Exp(x, params); })},
    {Formula::kLog,
     EachOf<double>([](double x, const FormulaParams& params) { return Log(x, params); })},
    {Formula::kExpm1, EachOf<double>([](double x) { return std::expm1(x); })},
    {Formula::kLog1p, EachOf<double>([](double x) { return std::log1p(x); })},
    {Formula::kSin, EachOf<double>([](double x) { return std::sin(x); })},
    {Formula::kCos, EachOf<double>([](double x) { return std::cos(x); })},
    {Formula::kTanh, EachOf<double>([](double x) { return std::tanh(x); })},
    {Formula::kErf, EachOf<double>([](double x) { return std::erf(x); })},
    {Formula::kRelu, EachOf<double>([](double x) { return x <= 0 ? 0.0 : x; })},
    {Formula::kSigmoid, EachOf<double>([](double x) { return Sigmoid(x); })},
};

}  // namespace

BlockFn DoubleBlock(Formula formula) {
  return FindBlockOf<double>(kDoubleRows, formula);
}

}  // namespace npumesh
