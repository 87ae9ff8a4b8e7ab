// The rest of the activations, as a table of formulas.
#include <algorithm>
#include <cmath>

#include "graph/ops/elementwise/family.h"
#include "graph/ops/elementwise/pointwise.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

// x limited to [low, high]; NaN stays.
double Clamp(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

// The polynomial that stands for erf, by the operator's definition; s is the sign of x.
double FastGeluV2(double x) {
  const double s = x > 0 ? 1 : x < 0 ? -1 : 0;
  const double bend = std::min(std::fabs(0.7071 * x), 1.769) - 1.769;
  return x * (s * (-0.1444 * bend * bend + 0.5) + 0.5);
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

double SoftShrink(double x, double limit) {
  const double rest = std::fabs(x) - limit;
  return rest <= 0 ? 0 : std::copysign(rest, x);
}

double SoftplusV2(double x, double beta, double threshold) {
  const double scaled = beta * x;
  return scaled > threshold ? x : Softplus(scaled) / beta;
}

// PRelu: one weight for all, or one for each channel (dimension 1).
Result<Shape> PReluShape(const OpContext& op, int slot) {
  const Shape& x = op.in(0).shape;
  const Shape& weight = op.in(slot).shape;
  if (slot == 0 || weight.elements() == 1) return weight;
  if (x.rank() < 2 || weight.elements() != x[1]) {
    return Error(Code::kInvalidArgument,
                 "{}: \"weight\" is {}; expected one element, or one for each channel of x {}",
                 op.Who(), weight.ToString(), x.ToString());
  }
  std::vector<int64_t> dims(static_cast<size_t>(x.rank()) - 1, 1);
  dims[0] = x[1];
  return Shape(std::move(dims));
}

const PointwiseSpec kActivationRows[] = {
    {"Relu6(x) -> y",
     [](double x) { return Clamp(x, 0, 6); },
     {.integer = [](WideInt x) { return std::clamp<WideInt>(x, 0, 6); }}},
    {"LeakyRelu(x; negative_slope=0.0) -> y",
     [](double x, const C& c) { return x > 0 ? x : c[0] * x; }},
    {"Elu(x; alpha=1.0, scale=1.0, input_scale=1.0) -> y",
     [](double x, const C& c) { return c[1] * (x > 0 ? x : c[0] * std::expm1(c[2] * x)); }},
    {"Selu(x) -> y",
     [](double x) { return kSeluScale * (x > 0 ? x : kSeluAlpha * std::expm1(x)); }},
    {"Softsign(x) -> y", [](double x) { return x / (1 + std::fabs(x)); }},
    {"FastGeluV2(x) -> y", [](double x) { return FastGeluV2(x); }},
    {"HardSigmoid(input_x; alpha=0.16666666, beta=0.5) -> output_y",
     [](double x, const C& c) { return Clamp(c[0] * x + c[1], 0, 1); },
     {.truncates = true}},
    {"HardSwish(x) -> y", [](double x) { return x * Clamp(x + 3, 0, 6) / 6; }},
    {"HardShrink(input_x; lambd=0.5) -> output_y",
     [](double x, const C& c) { return std::fabs(x) <= c[0] ? 0 : x; }},
    {"SoftShrink(input_x; lambd=0.5) -> output_y",
     [](double x, const C& c) { return SoftShrink(x, c[0]); }},
    {"Mish(x) -> y", [](double x) { return x * std::tanh(Softplus(x)); }},
    {"LogSigmoid(x) -> y", [](double x) { return -Softplus(-x); }},
    {"Softplus(x) -> y", [](double x) { return Softplus(x); }},
    {"SoftplusV2(x; beta=1.0, threshold=20.0) -> y",
     [](double x, const C& c) { return SoftplusV2(x, c[0], c[1]); }},
    {"ThresholdV2(x, threshold, value?) -> y",
     [](double x, double threshold, double value) {
       return x > threshold || std::isnan(x) ? x : value;
     },
     {.integer = [](WideInt x, WideInt threshold,
                    WideInt value) { return x > threshold ? x : value; },
      .data = 1}},
    {"PRelu(x, weight) -> y",
     [](double x, double weight) { return x > 0 ? x : weight * x; },
     {.data = 1, .seen_as = PReluShape}},
};

}  // namespace

void RegisterPointwiseActivationOps(OpRegistry& registry) {
  RegisterPointwise(registry, kActivationRows);
}

}  // namespace npumesh
