// The rest of the activations, as a table of formulas.
#include <algorithm>
#include <cmath>

#include "graph/ops/elementwise/family.h"
#include "graph/ops/elementwise/pointwise.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

const std::vector<PortSpec> kOne = {{"x"}};

AttrSpec Float(std::string_view name, float fallback) {
  return {name, AttrValue::Float(fallback)};
}

// x limited to [low, high]; NaN stays.
double Clamp(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

// ln(1 + e^x) without overflow.
double Softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

// The polynomial that stands for erf, by the operator's definition; s is the sign of x.
double FastGeluV2(double x) {
  const double s = x > 0 ? 1 : x < 0 ? -1 : 0;
  const double bend = std::min(std::fabs(0.7071 * x), 1.769) - 1.769;
  return x * (s * (-0.1444 * bend * bend + 0.5) + 0.5);
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

const PointwiseSpec kRows[] = {
    {.type = "Relu6",
     .inputs = kOne,
     .real = [](const double* in, const C&, double* out) { out[0] = Clamp(in[0], 0, 6); },
     .integer = [](const WideInt* in, const C&,
                   WideInt* out) { out[0] = std::clamp<WideInt>(in[0], 0, 6); }},
    {.type = "LeakyRelu",
     .inputs = kOne,
     .real = [](const double* in, const C& c,
                double* out) { out[0] = in[0] > 0 ? in[0] : c.attr[0] * in[0]; },
     .attrs = {Float("negative_slope", 0.0f)}},
    {.type = "Elu",
     .inputs = kOne,
     .real =
         [](const double* in, const C& c, double* out) {
           out[0] = c.attr[1] * (in[0] > 0 ? in[0] : c.attr[0] * std::expm1(c.attr[2] * in[0]));
         },
     .attrs = {Float("alpha", 1.0f), Float("scale", 1.0f), Float("input_scale", 1.0f)}},
    {.type = "Selu",
     .inputs = kOne,
     .real =
         [](const double* in, const C&, double* out) {
           out[0] = kSeluScale * (in[0] > 0 ? in[0] : kSeluAlpha * std::expm1(in[0]));
         }},
    {.type = "Softsign",
     .inputs = kOne,
     .real = [](const double* in, const C&,
                double* out) { out[0] = in[0] / (1 + std::fabs(in[0])); }},
    {.type = "FastGeluV2",
     .inputs = kOne,
     .real = [](const double* in, const C&, double* out) { out[0] = FastGeluV2(in[0]); }},
    {.type = "HardSigmoid",
     .inputs = {{"input_x"}},
     .real = [](const double* in, const C& c,
                double* out) { out[0] = Clamp(c.attr[0] * in[0] + c.attr[1], 0, 1); },
     .attrs = {Float("alpha", 0.16666666f), Float("beta", 0.5f)},
     .outputs = {{"output_y"}},
     .truncates = true},
    {.type = "HardSwish",
     .inputs = kOne,
     .real = [](const double* in, const C&,
                double* out) { out[0] = in[0] * Clamp(in[0] + 3, 0, 6) / 6; }},
    {.type = "HardShrink",
     .inputs = {{"input_x"}},
     .real = [](const double* in, const C& c,
                double* out) { out[0] = std::fabs(in[0]) <= c.attr[0] ? 0 : in[0]; },
     .attrs = {Float("lambd", 0.5f)},
     .outputs = {{"output_y"}}},
    {.type = "SoftShrink",
     .inputs = {{"input_x"}},
     .real =
         [](const double* in, const C& c, double* out) {
           const double rest = std::fabs(in[0]) - c.attr[0];
           out[0] = rest <= 0 ? 0 : std::copysign(rest, in[0]);
         },
     .attrs = {Float("lambd", 0.5f)},
     .outputs = {{"output_y"}}},
    {.type = "Mish",
     .inputs = kOne,
     .real = [](const double* in, const C&,
                double* out) { out[0] = in[0] * std::tanh(Softplus(in[0])); }},
    {.type = "LogSigmoid",
     .inputs = kOne,
     .real = [](const double* in, const C&, double* out) { out[0] = -Softplus(-in[0]); }},
    {.type = "Softplus",
     .inputs = kOne,
     .real = [](const double* in, const C&, double* out) { out[0] = Softplus(in[0]); }},
    {.type = "SoftplusV2",
     .inputs = kOne,
     .real =
         [](const double* in, const C& c, double* out) {
           const double scaled = c.attr[0] * in[0];
           out[0] = scaled > c.attr[1] ? in[0] : Softplus(scaled) / c.attr[0];
         },
     .attrs = {Float("beta", 1.0f), Float("threshold", 20.0f)}},
    {.type = "ThresholdV2",
     .inputs = {{"x"}, {"threshold"}, {"value", PortKind::kOptional}},
     .real = [](const double* in, const C&,
                double* out) { out[0] = in[0] > in[1] || std::isnan(in[0]) ? in[0] : in[2]; },
     .integer = [](const WideInt* in, const C&,
                   WideInt* out) { out[0] = in[0] > in[1] ? in[0] : in[2]; },
     .data = 1},
};

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

}  // namespace

void RegisterPointwiseActivationOps(OpRegistry& registry) {
  for (const PointwiseSpec& spec : kRows) RegisterPointwise(registry, spec);
  RegisterPointwise(registry,
                    {.type = "PRelu",
                     .inputs = {{"x"}, {"weight"}},
                     .real = [](const double* in, const C&,
                                double* out) { out[0] = in[0] > 0 ? in[0] : in[1] * in[0]; },
                     .data = 1,
                     .seen_as = PReluShape});
}

}  // namespace npumesh
