// Formulas on double: the lanes, and the C library for what they have not.
#include <cmath>
#include <functional>

#include "graph/ops/toolbox/formula/formula_loop.h"
#include "graph/ops/toolbox/formula/formula_loops.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {
namespace {

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
  return params[0] == -1.0f ? std::log(value) : std::log(value) / std::log(params[0]);
}

constexpr FormulaRow kDoubleRows[] = {
    {Formula::kPow, PairsOf<double>([](double a, double b) { return std::pow(a, b); })},
    {Formula::kFloorMod, PairsOf<double>([](double a, double b) { return FloorMod(a, b); })},
    {Formula::kScale,
     EachOf<double>([](double x, const FormulaParams& params) { return x * params[0]; })},
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
    {Formula::kSigmoid, EachOf<double>([](double x) { return Sigmoid(x); })},
};

}  // namespace

BlockFn DoubleBlock(Formula formula) {
  const BlockFn row = FindBlock(kDoubleRows, formula);
  return row != nullptr ? row : LanesOfFormula(formula, LoopType::kDouble);
}

}  // namespace npumesh
