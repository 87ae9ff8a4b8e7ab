// The rest of the element-wise mathematics, as a table of formulas.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/elementwise/pointwise.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// NaN wins on either side.
template <Real D>
D Max(D a, D b) {
  return Where(Either(a > b, a != a), a, b);
}
template <Real D>
D Min(D a, D b) {
  return Where(Either(a < b, a != a), a, b);
}

// A product modulo 2^64, which is as much of it as any type keeps.
WideInt Times(WideInt a, WideInt b) {
  return static_cast<WideInt>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// The inverse of erf by Newton's method, in the tails on erfc, which does not cancel there. The
// start is good to 2e-3 (S. Winitzki, "A handy approximation for the error function and its
// inverse"), and the number of digits doubles with every step.
template <Real D>
D ErfinvOfMagnitude(D y) {
  constexpr double kFit = 0.147;
  const D logarithm = Log1pOf(-y * y);
  const D half = 2 / (std::numbers::pi * kFit) + logarithm / 2;
  D x = RootOf(RootOf(half * half - logarithm / kFit) - half);
  for (int step = 0; step < 4; ++step) {
    const D slope = 2 * std::numbers::inv_sqrtpi * ExpOf(-x * x);
    const D error = Where(
        y < 0.5, [&] { return y - ErfOf(x); }, [&] { return ErfcOf(x) - (1 - y); });
    x = x + error / slope;
  }
  return x;
}

template <Real D>
D Erfinv(D y) {
  const D magnitude = Magnitude(y);
  const D x = Where(
      magnitude < 1, [&] { return ErfinvOfMagnitude(magnitude); },
      [&] { return Where(magnitude == 1, D(kInfinity), D(kNan)); });
  return Where(y == 0, y, Where(y < 0, -x, x));
}

template <Real D>
auto IsFinite(D x) {
  return Magnitude(x) < kInfinity;  // not so of NaN
}

// Rounds halves to even at `decimals` digits after the point (before it when negative).
template <Real D>
D RoundTo(D x, double decimals) {
  if (decimals == 0) return RintOf(x);
  const double scale = std::pow(10.0, std::fabs(decimals));
  return Where(IsFinite(x), decimals > 0 ? RintOf(x * scale) / scale : RintOf(x / scale) * scale,
               x);
}

template <Real D>
D NanToNum(D x, double nan, double positive, double negative) {
  return Where(IsFinite(x), x, Where(x != x, nan, Where(x > 0, positive, negative)));
}

template <Real D>
D Logit(D x, double eps) {
  const D inside = eps < 0 ? x : Min(Max(x, D(eps)), D(1 - eps));
  return LogOf(inside / (1 - inside));
}

template <Real D>
auto IsClose(D a, D b, double rtol, double atol, bool equal_nan) {
  const auto near = Both(IsFinite(b), Magnitude(a - b) <= atol + rtol * Magnitude(b));
  const auto close = Either(near, a == b);
  return equal_nan ? Either(close, Both(a != a, b != b)) : close;
}

// ln(e^a + e^b).
template <Real D>
D LogAddExp(D a, D b) {
  const D apart = Max(a, b) + Log1pOf(ExpOf(-Magnitude(a - b)));
  return Where(a == b, a + std::numbers::ln2, apart);  // also both infinite
}

// PyTorch's two forms, each exact at its own end.
template <Real D>
D Lerp(D start, D end, D weight) {
  return Where(Magnitude(weight) < 0.5, start + weight * (end - start),
               end - (end - start) * (1 - weight));
}

template <typename Number>
Number Sum(const Number* in, const C& c) {
  Number sum = in[0];
  for (int i = 1; i < c.slots; ++i) sum = sum + in[i];
  return sum;
}

const PointwiseSpec kMath[] = {
    // ---- one operand ----
    {"Tan(x) -> y", [](Real auto x) { return TanOf(x); }, {.widens = true}},
    {"Sinh(x) -> y",
     [](Real auto x) { return SinhOf(x); },
     {.widens = true, .precision = PrecisionClass::kBlack}},
    {"Cosh(x) -> y",
     [](Real auto x) { return CoshOf(x); },
     {.widens = true, .precision = PrecisionClass::kBlack}},
    {"Asin(x) -> y", [](Real auto x) { return AsinOf(x); }, {.widens = true}},
    {"Acos(x) -> y", [](Real auto x) { return AcosOf(x); }, {.widens = true}},
    {"Atan(x) -> y", [](Real auto x) { return AtanOf(x); }, {.widens = true}},
    {"Asinh(x) -> y", [](Real auto x) { return AsinhOf(x); }, {.widens = true}},
    {"Acosh(x) -> y", [](Real auto x) { return AcoshOf(x); }, {.widens = true}},
    {"Atanh(x) -> y", [](Real auto x) { return AtanhOf(x); }, {.widens = true}},
    {"Inv(x) -> y", [](Real auto x) { return 1 / x; }},
    {"Erfc(x) -> y", [](Real auto x) { return ErfcOf(x); }},
    {"Erfinv(input_x) -> output_y", [](Real auto x) { return Erfinv(x); }},
    {"Trunc(input_x) -> output_y",
     [](Real auto x) { return Where(x < 0, Above(x), Below(x)); },
     {.integer = [](WideInt x) { return x; }}},
    {"Round(x; decimals=0) -> y",
     [](Real auto x, const C& c) { return RoundTo(x, c[0]); },
     {.integer = [](WideInt x) { return x; }}},
    {"NanToNum(x; nan:float, posinf:float, neginf:float) -> y",
     [](Real auto x, const C& c) { return NanToNum(x, c[0], c[1], c[2]); }},
    {"Adds(x; value:float) -> y",
     [](Real auto x, const C& c) { return x + c[0]; },
     {.truncates = true}},
    {"Logit(x; eps=-1.0) -> y", [](Real auto x, const C& c) { return Logit(x, c[0]); }},

    // ---- tests ----
    {"IsNan(x) -> y", [](Real auto x) { return x != x; }, {.flags = true}},
    {"IsInf(x) -> y", [](Real auto x) { return Magnitude(x) == kInfinity; }, {.flags = true}},
    {"IsFinite(x) -> y", [](Real auto x) { return IsFinite(x); }, {.flags = true}},
    {"IsClose(x1, x2; rtol=1e-05, atol=1e-08, equal_nan=false) -> y",
     [](Real auto a, Real auto b, const C& c) { return IsClose(a, b, c[0], c[1], c[2] != 0); },
     {.flags = true}},

    // ---- two operands ----
    {"SquaredDifference(x1, x2) -> y",
     [](Real auto a, Real auto b) { return (a - b) * (a - b); },
     {.integer = [](WideInt a, WideInt b) { return Times(a - b, a - b); }}},
    {"DivNoNan(x1, x2) -> y",
     [](Real auto a, Real auto b) { return Where(b == 0, 0, a / b); },
     {.integer = [](WideInt a, WideInt b) { return b == 0 ? 0 : a / b; }}},
    {"TruncateDiv(x1, x2) -> y",
     [](Real auto a, Real auto b) {
       const auto quotient = a / b;
       return Where(quotient < 0, Above(quotient), Below(quotient));
     },
     {.integer = [](WideInt a, WideInt b) { return a / b; }, .divisor = 1}},
    {"Mod(x1, x2) -> y",
     [](Real auto a, Real auto b) { return ModOf(a, b); },
     {.integer = [](WideInt a, WideInt b) { return a % b; }, .divisor = 1}},
    {"Atan2(x1, x2) -> y", [](Real auto a, Real auto b) { return Atan2Of(a, b); }},
    {"Xdivy(x1, x2) -> y", [](Real auto a, Real auto b) { return Where(a == 0, 0, a / b); }},
    {"Xlogy(x1, x2) -> y",
     [](Real auto a, Real auto b) { return Where(Both(a == 0, b == b), 0, a * LogOf(b)); },
     {.precision = PrecisionClass::kBlack}},
    {"Xlog1py(x, y) -> z",
     [](Real auto a, Real auto b) { return Where(Both(a == 0, b == b), 0, a * Log1pOf(b)); },
     {.precision = PrecisionClass::kBlack}},
    // The base, scale and shift of the interface are those of Exp and Log.
    {"LogAddExp(x1, x2; base=-1.0, scale=1.0, shift=0.0) -> y",
     [](Real auto a, Real auto b, const C& c) {
       const double base = c[0] == -1 ? 1 : std::log(c[0]);
       return LogAddExp(base * (c[1] * a + c[2]), base * (c[1] * b + c[2])) / base;
     },
     {.precision = PrecisionClass::kBlack}},

    // ---- more operands ----
    // The order of the two steps decides what an empty interval gives.
    {"ClipByValueV2(x, clip_value_min, clip_value_max) -> y",
     [](Real auto x, Real auto low, Real auto high) { return Min(Max(x, low), high); },
     {.integer = [](WideInt x, WideInt low,
                    WideInt high) { return std::min(std::max(x, low), high); },
      .like = 0}},
    {"ClipByValue(x, clip_value_min, clip_value_max) -> y",
     [](Real auto x, Real auto low, Real auto high) { return Max(Min(x, high), low); },
     {.integer = [](WideInt x, WideInt low,
                    WideInt high) { return std::max(std::min(x, high), low); },
      .like = 0}},
    {"AddN(x...; N=1) -> y",
     []<Real D>(const D* in, const C& c) { return Sum(in, c); },
     {.integer = [](const WideInt* in, const C& c) { return Sum(in, c); }}},
    {"Axpy(x1, x2; alpha:float) -> y",
     [](Real auto a, Real auto b, const C& c) { return a + c[0] * b; },
     {.truncates = true}},
    {"AxpyV2(x1, x2, alpha) -> y",
     [](Real auto a, Real auto b, Real auto alpha) { return a + alpha * b; },
     {.integer = [](WideInt a, WideInt b, WideInt alpha) { return a + Times(alpha, b); },
      .data = 2}},
    {"Sxpy(x1, x2, alpha?) -> y",
     [](Real auto a, Real auto b, Real auto alpha) { return a - alpha * b; },
     {.integer = [](WideInt a, WideInt b, WideInt alpha) { return a - Times(alpha, b); },
      .data = 2,
      .absent = 1}},
    {"Lerp(start, end, weight) -> y",
     [](Real auto start, Real auto end, Real auto weight) { return Lerp(start, end, weight); }},
    {"Addcmul(input_data, x1, x2, value) -> y",
     [](Real auto x, Real auto a, Real auto b, Real auto value) { return x + value * a * b; },
     {.integer = [](WideInt x, WideInt a, WideInt b,
                    WideInt value) { return x + Times(value, Times(a, b)); },
      .data = 3}},
    {"Addcdiv(input_data, x1, x2, value) -> y",
     [](Real auto x, Real auto a, Real auto b, Real auto value) { return x + value * a / b; },
     {.data = 3}},
};

}  // namespace

void RegisterPointwiseMathOps(OpRegistry& registry) {
  RegisterPointwise(registry, kMath);
  registry.Alias("TruncateMod", "Mod");
}

}  // namespace npumesh
