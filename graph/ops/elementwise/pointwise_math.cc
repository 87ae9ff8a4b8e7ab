// The rest of the element-wise mathematics, as a table of formulas.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "graph/ops/elementwise/family.h"
#include "graph/ops/elementwise/pointwise.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// NaN wins on either side.
double Max(double a, double b) {
  return a > b || std::isnan(a) ? a : b;
}
double Min(double a, double b) {
  return a < b || std::isnan(a) ? a : b;
}

// A product modulo 2^64, which is as much of it as any type keeps.
WideInt Times(WideInt a, WideInt b) {
  return static_cast<WideInt>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// The inverse of erf by Newton's method, in the tails on erfc, which does not cancel there. The
// start is good to 2e-3 (S. Winitzki, "A handy approximation for the error function and its
// inverse"), and the number of digits doubles with every step.
double Erfinv(double y) {
  if (std::isnan(y) || std::fabs(y) > 1) return kNan;
  if (std::fabs(y) == 1) return std::copysign(std::numeric_limits<double>::infinity(), y);
  constexpr double kFit = 0.147;
  const double magnitude = std::fabs(y);
  const double logarithm = std::log1p(-magnitude * magnitude);
  const double half = 2 / (std::numbers::pi * kFit) + logarithm / 2;
  double x = std::sqrt(std::sqrt(half * half - logarithm / kFit) - half);
  for (int step = 0; step < 4; ++step) {
    const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-x * x);
    const double error = magnitude < 0.5 ? magnitude - std::erf(x) : std::erfc(x) - (1 - magnitude);
    x += error / slope;
  }
  return std::copysign(x, y);
}

// std::nearbyint, which calls the C library on processors without SSE4.1: adding 2^52 leaves no
// digits after the point.
double NearestEven(double x) {
  constexpr double kWhole = 0x1p52;  // from here on every double is whole
  const double magnitude = std::fabs(x);
  return magnitude < kWhole ? std::copysign((magnitude + kWhole) - kWhole, x) : x;
}

// Rounds halves to even at `decimals` digits after the point (before it when negative).
double RoundTo(double x, double decimals) {
  if (decimals == 0 || !std::isfinite(x)) return NearestEven(x);
  const double scale = std::pow(10.0, std::fabs(decimals));
  return decimals > 0 ? std::nearbyint(x * scale) / scale : std::nearbyint(x / scale) * scale;
}

double NanToNum(double x, double nan, double positive, double negative) {
  const double replaced = std::isnan(x) ? nan : x > 0 ? positive : negative;
  return std::isfinite(x) ? x : replaced;
}

double Logit(double x, double eps) {
  const double inside = eps < 0 ? x : Min(Max(x, eps), 1 - eps);
  return std::log(inside / (1 - inside));
}

bool IsClose(double a, double b, double rtol, double atol, bool equal_nan) {
  const bool near = std::isfinite(b) && std::fabs(a - b) <= atol + rtol * std::fabs(b);
  return near || (equal_nan && std::isnan(a) && std::isnan(b)) || a == b;
}

// ln(e^a + e^b).
double LogAddExp(double a, double b) {
  if (a == b) return a + std::numbers::ln2;  // also both infinite
  return Max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

// PyTorch's two forms, each exact at its own end.
double Lerp(double start, double end, double weight) {
  return std::fabs(weight) < 0.5 ? start + weight * (end - start)
                                 : end - (end - start) * (1 - weight);
}

template <typename Number>
Number Sum(const Number* in, const C& c) {
  Number sum = in[0];
  for (int i = 1; i < c.slots; ++i) sum += in[i];
  return sum;
}

const PointwiseSpec kMath[] = {
    // ---- one operand ----
    {"Tan(x) -> y", [](double x) { return std::tan(x); }, {.widens = true}},
    {"Sinh(x) -> y",
     [](double x) { return std::sinh(x); },
     {.widens = true, .precision = PrecisionClass::kBlack}},
    {"Cosh(x) -> y",
     [](double x) { return std::cosh(x); },
     {.widens = true, .precision = PrecisionClass::kBlack}},
    {"Asin(x) -> y", [](double x) { return std::asin(x); }, {.widens = true}},
    {"Acos(x) -> y", [](double x) { return std::acos(x); }, {.widens = true}},
    {"Atan(x) -> y", [](double x) { return std::atan(x); }, {.widens = true}},
    {"Asinh(x) -> y", [](double x) { return std::asinh(x); }, {.widens = true}},
    {"Acosh(x) -> y", [](double x) { return std::acosh(x); }, {.widens = true}},
    {"Atanh(x) -> y", [](double x) { return std::atanh(x); }, {.widens = true}},
    {"Inv(x) -> y", [](double x) { return 1 / x; }},
    {"Erfc(x) -> y", [](double x) { return std::erfc(x); }},
    {"Rint(x) -> y", [](double x) { return NearestEven(x); }},
    {"Erfinv(input_x) -> output_y", [](double x) { return Erfinv(x); }},
    {"Trunc(input_x) -> output_y",
     [](double x) { return std::trunc(x); },
     {.integer = [](WideInt x) { return x; }}},
    {"Round(x; decimals=0) -> y",
     [](double x, const C& c) { return RoundTo(x, c[0]); },
     {.integer = [](WideInt x) { return x; }}},
    {"NanToNum(x; nan:float, posinf:float, neginf:float) -> y",
     [](double x, const C& c) { return NanToNum(x, c[0], c[1], c[2]); }},
    {"Adds(x; value:float) -> y",
     [](double x, const C& c) { return x + c[0]; },
     {.truncates = true}},
    {"Logit(x; eps=-1.0) -> y", [](double x, const C& c) { return Logit(x, c[0]); }},

    // ---- tests ----
    {"IsNan(x) -> y", [](double x) { return std::isnan(x); }, {.flags = true}},
    {"IsInf(x) -> y", [](double x) { return std::isinf(x); }, {.flags = true}},
    {"IsFinite(x) -> y", [](double x) { return std::isfinite(x); }, {.flags = true}},
    {"IsClose(x1, x2; rtol=1e-05, atol=1e-08, equal_nan=false) -> y",
     [](double a, double b, const C& c) { return IsClose(a, b, c[0], c[1], c[2] != 0); },
     {.flags = true}},

    // ---- two operands ----
    {"SquaredDifference(x1, x2) -> y",
     [](double a, double b) { return (a - b) * (a - b); },
     {.integer = [](WideInt a, WideInt b) { return Times(a - b, a - b); }}},
    {"DivNoNan(x1, x2) -> y",
     [](double a, double b) { return b == 0 ? 0 : a / b; },
     {.integer = [](WideInt a, WideInt b) { return b == 0 ? 0 : a / b; }}},
    {"TruncateDiv(x1, x2) -> y",
     [](double a, double b) { return std::trunc(a / b); },
     {.integer = [](WideInt a, WideInt b) { return a / b; }, .divisor = 1}},
    {"Mod(x1, x2) -> y",
     [](double a, double b) { return std::fmod(a, b); },
     {.integer = [](WideInt a, WideInt b) { return a % b; }, .divisor = 1}},
    {"Atan2(x1, x2) -> y", [](double a, double b) { return std::atan2(a, b); }},
    {"Xdivy(x1, x2) -> y", [](double a, double b) { return a == 0 ? 0 : a / b; }},
    {"Xlogy(x1, x2) -> y",
     [](double a, double b) { return a == 0 && !std::isnan(b) ? 0 : a * std::log(b); },
     {.precision = PrecisionClass::kBlack}},
    {"Xlog1py(x, y) -> z",
     [](double a, double b) { return a == 0 && !std::isnan(b) ? 0 : a * std::log1p(b); },
     {.precision = PrecisionClass::kBlack}},
    // The base, scale and shift of the interface are those of Exp and Log.
    {"LogAddExp(x1, x2; base=-1.0, scale=1.0, shift=0.0) -> y",
     [](double a, double b, const C& c) {
       const double base = c[0] == -1 ? 1 : std::log(c[0]);
       return LogAddExp(base * (c[1] * a + c[2]), base * (c[1] * b + c[2])) / base;
     },
     {.precision = PrecisionClass::kBlack}},

    // ---- more operands ----
    // The order of the two steps decides what an empty interval gives.
    {"ClipByValueV2(x, clip_value_min, clip_value_max) -> y",
     [](double x, double low, double high) { return Min(Max(x, low), high); },
     {.integer = [](WideInt x, WideInt low,
                    WideInt high) { return std::min(std::max(x, low), high); },
      .like = 0}},
    {"ClipByValue(x, clip_value_min, clip_value_max) -> y",
     [](double x, double low, double high) { return Max(Min(x, high), low); },
     {.integer = [](WideInt x, WideInt low,
                    WideInt high) { return std::max(std::min(x, high), low); },
      .like = 0}},
    {"AddN(x...; N=1) -> y",
     [](const double* in, const C& c) { return Sum(in, c); },
     {.integer = [](const WideInt* in, const C& c) { return Sum(in, c); }}},
    {"Axpy(x1, x2; alpha:float) -> y",
     [](double a, double b, const C& c) { return a + c[0] * b; },
     {.truncates = true}},
    {"AxpyV2(x1, x2, alpha) -> y",
     [](double a, double b, double alpha) { return a + alpha * b; },
     {.integer = [](WideInt a, WideInt b, WideInt alpha) { return a + Times(alpha, b); },
      .data = 2}},
    {"Sxpy(x1, x2, alpha?) -> y",
     [](double a, double b, double alpha) { return a - alpha * b; },
     {.integer = [](WideInt a, WideInt b, WideInt alpha) { return a - Times(alpha, b); },
      .data = 2,
      .absent = 1}},
    {"Lerp(start, end, weight) -> y",
     [](double start, double end, double weight) { return Lerp(start, end, weight); }},
    {"Addcmul(input_data, x1, x2, value) -> y",
     [](double x, double a, double b, double value) { return x + value * a * b; },
     {.integer = [](WideInt x, WideInt a, WideInt b,
                    WideInt value) { return x + Times(value, Times(a, b)); },
      .data = 3}},
    {"Addcdiv(input_data, x1, x2, value) -> y",
     [](double x, double a, double b, double value) { return x + value * a / b; },
     {.data = 3}},
};

}  // namespace

void RegisterPointwiseMathOps(OpRegistry& registry) {
  RegisterPointwise(registry, kMath);
  registry.Alias("TruncateMod", "Mod");
}

}  // namespace npumesh
