// The rest of the element-wise mathematics, as tables of formulas.
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

const std::vector<PortSpec> kOne = {{"x"}};
const std::vector<PortSpec> kTwo = {{"x1"}, {"x2"}};

AttrSpec Float(std::string_view name) {
  return {name, Required::kFloat};
}
AttrSpec Float(std::string_view name, float fallback) {
  return {name, AttrValue::Float(fallback)};
}

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

double HalfToEven(double x) {
  return std::nearbyint(x);
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

// Rounds to `decimals` digits after the point (before it when negative).
double RoundTo(double x, double decimals) {
  if (decimals == 0 || !std::isfinite(x)) return HalfToEven(x);
  const double scale = std::pow(10.0, std::fabs(decimals));
  return decimals > 0 ? HalfToEven(x * scale) / scale : HalfToEven(x / scale) * scale;
}

double LogAddExp(double a, double b) {
  if (a == b) return a + std::numbers::ln2;  // also both infinite
  return Max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

// PyTorch's two forms, each exact at its own end.
double Lerp(double start, double end, double weight) {
  return std::fabs(weight) < 0.5 ? start + weight * (end - start)
                                 : end - (end - start) * (1 - weight);
}

// ---- one operand ----

struct UnaryRow {
  std::string_view type;
  RealFormula real;
  bool widens = false;  // integers give float32
};

const UnaryRow kUnary[] = {
    {"Tan", [](const double* in, const C&, double* out) { out[0] = std::tan(in[0]); }, true},
    {"Sinh", [](const double* in, const C&, double* out) { out[0] = std::sinh(in[0]); }, true},
    {"Cosh", [](const double* in, const C&, double* out) { out[0] = std::cosh(in[0]); }, true},
    {"Asin", [](const double* in, const C&, double* out) { out[0] = std::asin(in[0]); }, true},
    {"Acos", [](const double* in, const C&, double* out) { out[0] = std::acos(in[0]); }, true},
    {"Atan", [](const double* in, const C&, double* out) { out[0] = std::atan(in[0]); }, true},
    {"Asinh", [](const double* in, const C&, double* out) { out[0] = std::asinh(in[0]); }, true},
    {"Acosh", [](const double* in, const C&, double* out) { out[0] = std::acosh(in[0]); }, true},
    {"Atanh", [](const double* in, const C&, double* out) { out[0] = std::atanh(in[0]); }, true},
    {"Inv", [](const double* in, const C&, double* out) { out[0] = 1 / in[0]; }},
    {"Erfc", [](const double* in, const C&, double* out) { out[0] = std::erfc(in[0]); }},
    {"Rint", [](const double* in, const C&, double* out) { out[0] = HalfToEven(in[0]); }},
};

void RegisterUnary(OpRegistry& registry) {
  for (const UnaryRow& row : kUnary) {
    RegisterPointwise(registry,
                      {.type = row.type, .inputs = kOne, .real = row.real, .widens = row.widens});
  }
  RegisterPointwise(
      registry, {.type = "Erfinv",
                 .inputs = {{"input_x"}},
                 .real = [](const double* in, const C&, double* out) { out[0] = Erfinv(in[0]); },
                 .outputs = {{"output_y"}}});
  RegisterPointwise(
      registry,
      {.type = "Trunc",
       .inputs = {{"input_x"}},
       .real = [](const double* in, const C&, double* out) { out[0] = std::trunc(in[0]); },
       .integer = [](const WideInt* in, const C&, WideInt* out) { out[0] = in[0]; },
       .outputs = {{"output_y"}}});
  RegisterPointwise(registry,
                    {.type = "Round",
                     .inputs = kOne,
                     .real = [](const double* in, const C& c,
                                double* out) { out[0] = RoundTo(in[0], c.attr[0]); },
                     .integer = [](const WideInt* in, const C&, WideInt* out) { out[0] = in[0]; },
                     .attrs = {{"decimals", AttrValue::Int(0)}}});
  RegisterPointwise(registry, {.type = "NanToNum",
                               .inputs = kOne,
                               .real =
                                   [](const double* in, const C& c, double* out) {
                                     const double replaced = std::isnan(in[0]) ? c.attr[0]
                                                             : in[0] > 0       ? c.attr[1]
                                                                               : c.attr[2];
                                     out[0] = std::isfinite(in[0]) ? in[0] : replaced;
                                   },
                               .attrs = {Float("nan"), Float("posinf"), Float("neginf")}});
  RegisterPointwise(registry, {.type = "Adds",
                               .inputs = kOne,
                               .real = [](const double* in, const C& c,
                                          double* out) { out[0] = in[0] + c.attr[0]; },
                               .attrs = {Float("value")},
                               .truncates = true});
  RegisterPointwise(registry, {.type = "Logit",
                               .inputs = kOne,
                               .real =
                                   [](const double* in, const C& c, double* out) {
                                     const double eps = c.attr[0];
                                     const double x =
                                         eps < 0 ? in[0] : Min(Max(in[0], eps), 1 - eps);
                                     out[0] = std::log(x / (1 - x));
                                   },
                               .attrs = {Float("eps", -1.0f)}});
}

// ---- tests ----

void RegisterPredicates(OpRegistry& registry) {
  const UnaryRow rows[] = {
      {"IsNan", [](const double* in, const C&, double* out) { out[0] = std::isnan(in[0]); }},
      {"IsInf", [](const double* in, const C&, double* out) { out[0] = std::isinf(in[0]); }},
      {"IsFinite", [](const double* in, const C&, double* out) { out[0] = std::isfinite(in[0]); }},
  };
  for (const UnaryRow& row : rows) {
    RegisterPointwise(registry,
                      {.type = row.type, .inputs = kOne, .real = row.real, .flags = true});
  }
  RegisterPointwise(
      registry,
      {.type = "IsClose",
       .inputs = kTwo,
       .real =
           [](const double* in, const C& c, double* out) {
             const bool near = std::isfinite(in[1]) &&
                               std::fabs(in[0] - in[1]) <= c.attr[1] + c.attr[0] * std::fabs(in[1]);
             const bool both = c.attr[2] != 0 && std::isnan(in[0]) && std::isnan(in[1]);
             out[0] = near || both || in[0] == in[1];
           },
       .attrs = {Float("rtol", 1e-5f), Float("atol", 1e-8f), {"equal_nan", AttrValue::Bool(false)}},
       .flags = true});
}

// ---- two operands ----

struct BinaryRow {
  std::string_view type;
  RealFormula real;
  IntegerFormula integer = nullptr;
  bool divides = false;  // no integer zero as x2
};

// Integer remainders by zero are what the device's reference gives (5.2): -1, cut to the type.
const BinaryRow kBinary[] = {
    {"SquaredDifference",
     [](const double* in, const C&, double* out) { out[0] = (in[0] - in[1]) * (in[0] - in[1]); },
     [](const WideInt* in, const C&, WideInt* out) {
       out[0] = Times(in[0] - in[1], in[0] - in[1]);
     }},
    {"DivNoNan",
     [](const double* in, const C&, double* out) { out[0] = in[1] == 0 ? 0 : in[0] / in[1]; },
     [](const WideInt* in, const C&, WideInt* out) { out[0] = in[1] == 0 ? 0 : in[0] / in[1]; }},
    {"TruncateDiv",
     [](const double* in, const C&, double* out) { out[0] = std::trunc(in[0] / in[1]); },
     [](const WideInt* in, const C&, WideInt* out) { out[0] = in[0] / in[1]; }, true},
    {"Mod", [](const double* in, const C&, double* out) { out[0] = std::fmod(in[0], in[1]); },
     [](const WideInt* in, const C&, WideInt* out) { out[0] = in[0] % in[1]; }, true},
    {"TruncateMod",
     [](const double* in, const C&, double* out) { out[0] = std::fmod(in[0], in[1]); },
     [](const WideInt* in, const C&, WideInt* out) { out[0] = in[0] % in[1]; }, true},
    {"Atan2", [](const double* in, const C&, double* out) { out[0] = std::atan2(in[0], in[1]); }},
    {"Xdivy",
     [](const double* in, const C&, double* out) { out[0] = in[0] == 0 ? 0 : in[0] / in[1]; }},
    {"Xlogy",
     [](const double* in, const C&, double* out) {
       out[0] = in[0] == 0 && !std::isnan(in[1]) ? 0 : in[0] * std::log(in[1]);
     }},
};

void RegisterBinary(OpRegistry& registry) {
  for (const BinaryRow& row : kBinary) {
    RegisterPointwise(registry, {.type = row.type,
                                 .inputs = kTwo,
                                 .real = row.real,
                                 .integer = row.integer,
                                 .divisor = row.divides ? 1 : -1});
  }
  RegisterPointwise(
      registry, {.type = "Xlog1py",
                 .inputs = {{"x"}, {"y"}},
                 .real =
                     [](const double* in, const C&, double* out) {
                       out[0] = in[0] == 0 && !std::isnan(in[1]) ? 0 : in[0] * std::log1p(in[1]);
                     },
                 .outputs = {{"z"}}});
  // ln(e^x1 + e^x2); the base, scale and shift of the interface are those of Exp and Log.
  RegisterPointwise(registry,
                    {.type = "LogAddExp",
                     .inputs = kTwo,
                     .real =
                         [](const double* in, const C& c, double* out) {
                           const double base = c.attr[0] == -1 ? 1 : std::log(c.attr[0]);
                           out[0] = LogAddExp(base * (c.attr[1] * in[0] + c.attr[2]),
                                              base * (c.attr[1] * in[1] + c.attr[2])) /
                                    base;
                         },
                     .attrs = {Float("base", -1.0f), Float("scale", 1.0f), Float("shift", 0.0f)}});
}

// ---- more operands ----

void RegisterClips(OpRegistry& registry) {
  const std::vector<PortSpec> ports = {{"x"}, {"clip_value_min"}, {"clip_value_max"}};
  // The order of the two steps decides what an empty interval gives.
  RegisterPointwise(
      registry, {.type = "ClipByValueV2",
                 .inputs = ports,
                 .real = [](const double* in, const C&,
                            double* out) { out[0] = Min(Max(in[0], in[1]), in[2]); },
                 .integer = [](const WideInt* in, const C&,
                               WideInt* out) { out[0] = std::min(std::max(in[0], in[1]), in[2]); },
                 .like = 0});
  RegisterPointwise(
      registry, {.type = "ClipByValue",
                 .inputs = ports,
                 .real = [](const double* in, const C&,
                            double* out) { out[0] = Max(Min(in[0], in[2]), in[1]); },
                 .integer = [](const WideInt* in, const C&,
                               WideInt* out) { out[0] = std::max(std::min(in[0], in[2]), in[1]); },
                 .like = 0});
}

void RegisterSums(OpRegistry& registry) {
  RegisterPointwise(registry, {.type = "AddN",
                               .inputs = {{"x", PortKind::kDynamic}},
                               .real =
                                   [](const double* in, const C& c, double* out) {
                                     out[0] = in[0];
                                     for (int i = 1; i < c.slots; ++i) out[0] += in[i];
                                   },
                               .integer =
                                   [](const WideInt* in, const C& c, WideInt* out) {
                                     out[0] = in[0];
                                     for (int i = 1; i < c.slots; ++i) out[0] += in[i];
                                   },
                               .attrs = {{"N", AttrValue::Int(1)}}});
  RegisterPointwise(registry, {.type = "Axpy",
                               .inputs = kTwo,
                               .real = [](const double* in, const C& c,
                                          double* out) { out[0] = in[0] + c.attr[0] * in[1]; },
                               .attrs = {Float("alpha")},
                               .truncates = true});
  RegisterPointwise(
      registry,
      {.type = "AxpyV2",
       .inputs = {{"x1"}, {"x2"}, {"alpha"}},
       .real = [](const double* in, const C&, double* out) { out[0] = in[0] + in[2] * in[1]; },
       .integer = [](const WideInt* in, const C&,
                     WideInt* out) { out[0] = in[0] + Times(in[2], in[1]); },
       .data = 2});
  RegisterPointwise(
      registry,
      {.type = "Sxpy",
       .inputs = {{"x1"}, {"x2"}, {"alpha", PortKind::kOptional}},
       .real = [](const double* in, const C&, double* out) { out[0] = in[0] - in[2] * in[1]; },
       .integer = [](const WideInt* in, const C&,
                     WideInt* out) { out[0] = in[0] - Times(in[2], in[1]); },
       .data = 2,
       .absent = 1});
  RegisterPointwise(registry, {.type = "Lerp",
                               .inputs = {{"start"}, {"end"}, {"weight"}},
                               .real = [](const double* in, const C&, double* out) {
                                 out[0] = Lerp(in[0], in[1], in[2]);
                               }});
  RegisterPointwise(registry, {.type = "Addcmul",
                               .inputs = {{"input_data"}, {"x1"}, {"x2"}, {"value"}},
                               .real = [](const double* in, const C&,
                                          double* out) { out[0] = in[0] + in[3] * in[1] * in[2]; },
                               .integer =
                                   [](const WideInt* in, const C&, WideInt* out) {
                                     out[0] = in[0] + Times(in[3], Times(in[1], in[2]));
                                   },
                               .data = 3});
  RegisterPointwise(registry, {.type = "Addcdiv",
                               .inputs = {{"input_data"}, {"x1"}, {"x2"}, {"value"}},
                               .real = [](const double* in, const C&,
                                          double* out) { out[0] = in[0] + in[3] * in[1] / in[2]; },
                               .data = 3});
}

}  // namespace

void RegisterPointwiseMathOps(OpRegistry& registry) {
  RegisterUnary(registry);
  RegisterPredicates(registry);
  RegisterBinary(registry);
  RegisterClips(registry);
  RegisterSums(registry);
}

}  // namespace npumesh
