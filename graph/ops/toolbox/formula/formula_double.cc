// Formulas on double: the C library, element by element.
#include <cmath>
#include <functional>

#include "graph/ops/toolbox/formula/formula.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {
namespace {

// y = f(x), with the parameters where it takes them.
template <typename F>
constexpr BlockFn EachDouble(F) {
  return [](const void* const* in, void* out, size_t count, const FormulaParams& params) {
    const double* x = static_cast<const double*>(in[0]);
    double* y = static_cast<double*>(out);
    for (size_t i = 0; i < count; ++i) {
      if constexpr (std::is_invocable_v<F, double>) {
        y[i] = F()(x[i]);
      } else {
        y[i] = F()(x[i], params);
      }
    }
  };
}

template <typename To = double, typename F>
constexpr BlockFn DoublePairs(F) {
  return [](const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
    const double* a = static_cast<const double*>(in[0]);
    const double* b = static_cast<const double*>(in[1]);
    To* y = static_cast<To*>(out);
    for (size_t i = 0; i < count; ++i) y[i] = F()(a[i], b[i]);
  };
}

template <typename Relation>
constexpr BlockFn Compares() {
  return DoublePairs<uint8_t>(Relation());
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
    {Formula::kAdd, DoublePairs(std::plus<double>())},
    {Formula::kSub, DoublePairs(std::minus<double>())},
    {Formula::kMul, DoublePairs(std::multiplies<double>())},
    {Formula::kDiv, DoublePairs(std::divides<double>())},
    {Formula::kPow, DoublePairs([](double a, double b) { return std::pow(a, b); })},
    // Of zeros of both signs the first one.
    {Formula::kMax, DoublePairs([](double a, double b) { return a >= b || a != a ? a : b; })},
    {Formula::kMin, DoublePairs([](double a, double b) { return a <= b || a != a ? a : b; })},
    {Formula::kFloorDiv, DoublePairs([](double a, double b) { return FloorDiv(a, b); })},
    {Formula::kFloorMod, DoublePairs([](double a, double b) { return FloorMod(a, b); })},
    {Formula::kEqual, Compares<std::equal_to<double>>()},
    {Formula::kNotEqual, Compares<std::not_equal_to<double>>()},
    {Formula::kLess, Compares<std::less<double>>()},
    {Formula::kLessEqual, Compares<std::less_equal<double>>()},
    {Formula::kGreater, Compares<std::greater<double>>()},
    {Formula::kGreaterEqual, Compares<std::greater_equal<double>>()},
    {Formula::kScale,
     EachDouble([](double x, const FormulaParams& params) { return x * params[0]; })},
    {Formula::kSqrt, EachDouble([](double x) { return std::sqrt(x); })},
    {Formula::kRsqrt, EachDouble([](double x) { return 1 / std::sqrt(x); })},
    {Formula::kNeg, EachDouble([](double x) { return -x; })},
    {Formula::kReciprocal, EachDouble([](double x) { return 1 / x; })},
    {Formula::kAbs, EachDouble([](double x) { return std::fabs(x); })},
    {Formula::kSquare, EachDouble([](double x) { return x * x; })},
    {Formula::kSign, EachDouble([](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : x); })},
    {Formula::kFloor, EachDouble([](double x) { return std::floor(x); })},
    {Formula::kCeil, EachDouble([](double x) { return std::ceil(x); })},
    {Formula::kExp,
     EachDouble([](double x, const FormulaParams& params) { return Exp(x, params); })},
    {Formula::kLog,
     EachDouble([](double x, const FormulaParams& params) { return Log(x, params); })},
    {Formula::kExpm1, EachDouble([](double x) { return std::expm1(x); })},
    {Formula::kLog1p, EachDouble([](double x) { return std::log1p(x); })},
    {Formula::kSin, EachDouble([](double x) { return std::sin(x); })},
    {Formula::kCos, EachDouble([](double x) { return std::cos(x); })},
    {Formula::kTanh, EachDouble([](double x) { return std::tanh(x); })},
    {Formula::kErf, EachDouble([](double x) { return std::erf(x); })},
    {Formula::kRelu, EachDouble([](double x) { return x <= 0 ? 0.0 : x; })},
    {Formula::kSigmoid, EachDouble([](double x) { return Sigmoid(x); })},
};

}  // namespace

BlockFn DoubleBlock(Formula formula) {
  return FindBlock(kDoubleRows, formula);
}

}  // namespace npumesh
