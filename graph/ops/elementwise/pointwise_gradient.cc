// Gradients of point-wise operators and losses taken point by point.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/ops/elementwise/family.h"
#include "graph/ops/elementwise/pointwise.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

AttrSpec Float(std::string_view name, float fallback) {
  return {name, AttrValue::Float(fallback)};
}

const AttrSpec kConjugate = {"complex_conj", AttrValue::Bool(false)};
const AttrSpec kReduction = {"reduction", AttrValue::String("mean")};

double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double Softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

// d/dx of 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3).
double GeluTanhSlope(double x) {
  constexpr double kRoot = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double t = std::tanh(kRoot * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kRoot * (1 + 3 * 0.044715 * x * x);
}

// Phi(x) + x phi(x) of the normal distribution.
double GeluErfSlope(double x) {
  const double density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2;
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + x * density;
}

// d/dx of x sigmoid(scale x).
double SwishSlope(double x, double scale) {
  const double s = Sigmoid(scale * x);
  return s * (1 + scale * x * (1 - s));
}

double MishSlope(double x) {
  const double t = std::tanh(Softplus(x));
  return t + x * (1 - t * t) * Sigmoid(x);
}

// ---- of activations: (gradient, value of the forward pass) ----

const std::vector<PortSpec> kFeatures = {{"gradients"}, {"features"}};
const std::vector<PortSpec> kBackprops = {{"backprops"}};
const std::vector<PortSpec> kGradX = {{"dy"}, {"x"}};
const std::vector<PortSpec> kZ = {{"z"}};

const PointwiseSpec kActivations[] = {
    {.type = "ReluGrad",
     .inputs = kFeatures,
     .real = [](const double* in, const C&, double* out) { out[0] = in[1] > 0 ? in[0] : 0; },
     .integer = [](const WideInt* in, const C&, WideInt* out) { out[0] = in[1] > 0 ? in[0] : 0; },
     .outputs = kBackprops,
     .like = 0},
    {.type = "Relu6Grad",
     .inputs = kFeatures,
     .real = [](const double* in, const C&,
                double* out) { out[0] = in[1] > 0 && in[1] < 6 ? in[0] : 0; },
     .outputs = kBackprops,
     .like = 0},
    {.type = "ThresholdGradV2D",
     .inputs = kFeatures,
     .real = [](const double* in, const C& c,
                double* out) { out[0] = in[1] > c.attr[0] ? in[0] : 0; },
     .attrs = {{"threshold", Required::kFloat}},
     .outputs = kBackprops,
     .like = 0,
     .truncates = true},
    {.type = "LeakyReluGrad",
     .inputs = kFeatures,
     .real = [](const double* in, const C& c,
                double* out) { out[0] = in[1] > 0 ? in[0] : c.attr[0] * in[0]; },
     .attrs = {Float("negative_slope", 0.0f)},
     .outputs = kBackprops,
     .like = 0},
    {.type = "SoftplusGrad",
     .inputs = kFeatures,
     .real = [](const double* in, const C&, double* out) { out[0] = in[0] * Sigmoid(in[1]); },
     .outputs = kBackprops,
     .like = 0},
    {.type = "LogSigmoidGrad",
     .inputs = {{"grads"}, {"features"}},
     .real = [](const double* in, const C&, double* out) { out[0] = in[0] * Sigmoid(-in[1]); },
     .outputs = kBackprops,
     .like = 0},
    {.type = "SoftsignGrad",
     .inputs = kFeatures,
     .real =
         [](const double* in, const C&, double* out) {
           const double root = 1 + std::fabs(in[1]);
           out[0] = in[0] / (root * root);
         },
     .outputs = {{"output"}},
     .like = 0},
    {.type = "EluGradV2",
     .inputs = {{"grads"}, {"activations"}},
     .real =
         [](const double* in, const C& c, double* out) {
           const double alpha = c.attr[0], scale = c.attr[1], input_scale = c.attr[2];
           const double below = c.attr[3] != 0
                                    ? input_scale * (in[1] + scale * alpha)
                                    : input_scale * scale * alpha * std::exp(input_scale * in[1]);
           out[0] = in[0] * (in[1] <= 0 ? below : scale);
         },
     .attrs = {Float("alpha", 1.0f),
               Float("scale", 1.0f),
               Float("input_scale", 1.0f),
               {"is_result", AttrValue::Bool(false)}},
     .like = 0},
    {.type = "GeluGrad",
     .inputs = {{"dy"}, {"x"}, {"y"}},
     .real = [](const double* in, const C&, double* out) { out[0] = in[0] * GeluTanhSlope(in[1]); },
     .outputs = kZ,
     .like = 0},
    {.type = "GeluGradV2",
     .inputs = kGradX,
     .real =
         [](const double* in, const C& c, double* out) {
           out[0] = in[0] * (c.attr[0] == 0 ? GeluErfSlope(in[1]) : GeluTanhSlope(in[1]));
         },
     .attrs = {{"approximate", AttrValue::String("none")}},
     .outputs = kZ,
     .like = 0,
     .text = "approximate",
     .words = {"none", "tanh"}},
    {.type = "FastGeluGrad",
     .inputs = kGradX,
     .real = [](const double* in, const C&,
                double* out) { out[0] = in[0] * SwishSlope(in[1], 1.702); },
     .outputs = kZ,
     .like = 0},
    {.type = "SwishGrad",
     .inputs = {{"grad"}, {"x"}, {"y"}},
     .real = [](const double* in, const C& c,
                double* out) { out[0] = in[0] * SwishSlope(in[1], c.attr[0]); },
     .attrs = {Float("scale", 1.0f)},
     .outputs = {{"grad_x"}},
     .like = 0},
    {.type = "MishGrad",
     .inputs = {{"grad"}, {"x"}, {"tanhx", PortKind::kOptional}},
     .real = [](const double* in, const C&, double* out) { out[0] = in[0] * MishSlope(in[1]); },
     .outputs = {{"x_grad"}},
     .like = 0},
    {.type = "HardSwishGrad",
     .inputs = {{"grad"}, {"x"}},
     .real =
         [](const double* in, const C&, double* out) {
           const double slope = in[1] <= -3 ? 0 : in[1] >= 3 ? 1 : in[1] / 3 + 0.5;
           out[0] = in[0] * slope;
         },
     .like = 0},
    {.type = "HardSigmoidGrad",
     .inputs = {{"grads"}, {"input_x"}},
     .real =
         [](const double* in, const C& c, double* out) {
           const double y = c.attr[0] * in[1] + c.attr[1];
           out[0] = y > 0 && y < 1 ? in[0] * c.attr[0] : 0;
         },
     .attrs = {Float("alpha", 0.16666666f), Float("beta", 0.5f)},
     .like = 0},
    {.type = "HardtanhGrad",
     .inputs = {{"result"}, {"grad"}},
     .real = [](const double* in, const C& c,
                double* out) { out[0] = in[0] > c.attr[0] && in[0] < c.attr[1] ? in[1] : 0; },
     .attrs = {Float("min_val", -1.0f), Float("max_val", 1.0f)},
     .like = 1},
};

// ---- of functions: y is the result of the forward pass, or its argument where noted ----

struct FunctionRow {
  std::string_view type;
  RealFormula real;
  std::vector<AttrSpec> attrs = {};
};

const FunctionRow kFunctions[] = {
    {"SigmoidGrad",
     [](const double* in, const C&, double* out) { out[0] = in[1] * in[0] * (1 - in[0]); },
     {kConjugate}},
    {"TanhGrad",
     [](const double* in, const C&, double* out) { out[0] = in[1] * (1 - in[0] * in[0]); },
     {kConjugate}},
    {"SqrtGrad", [](const double* in, const C&, double* out) { out[0] = in[1] * 0.5 / in[0]; }},
    {"RsqrtGrad", [](const double* in, const C&,
                     double* out) { out[0] = -0.5 * in[1] * in[0] * in[0] * in[0]; }},
    {"ReciprocalGrad",
     [](const double* in, const C&, double* out) { out[0] = -in[1] * in[0] * in[0]; }},
    // y is the argument
    {"AsinGrad", [](const double* in, const C&,
                    double* out) { out[0] = in[1] / std::sqrt(1 - in[0] * in[0]); }},
    {"AcosGrad", [](const double* in, const C&,
                    double* out) { out[0] = -in[1] / std::sqrt(1 - in[0] * in[0]); }},
    {"AtanGrad",
     [](const double* in, const C&, double* out) { out[0] = in[1] / (1 + in[0] * in[0]); }},
    {"AbsGrad",
     [](const double* in, const C&, double* out) {
       out[0] = in[0] > 0 ? in[1] : in[0] < 0 ? -in[1] : 0;
     }},
    // y is the result
    {"AsinhGrad",
     [](const double* in, const C&, double* out) { out[0] = in[1] / std::cosh(in[0]); }},
    {"AcoshGrad",
     [](const double* in, const C&, double* out) { out[0] = in[1] / std::sinh(in[0]); }},
};

// ---- losses and their gradients ----

// The logarithm of a probability, which PyTorch keeps above -100.
double LogOf(double probability) {
  return std::max(std::log(probability), -100.0);
}

double BinaryCrossEntropy(double x, double y) {
  return -(y * LogOf(x) + (1 - y) * LogOf(1 - x));
}

double SmoothL1(double distance, double sigma) {
  const double d = std::fabs(distance);
  return d < sigma ? 0.5 * d * d / sigma : d - 0.5 * sigma;
}

// What a gradient is divided by: the elements when the loss was a mean.
double MeanDivisor(const C& c, double word) {
  return word == 1 ? static_cast<double>(c.elements) : 1;
}

const std::vector<PortSpec> kPredictLabel = {{"predict"}, {"label"}};
const std::vector<PortSpec> kPredictLabelGrad = {{"predict"}, {"label"}, {"dout"}};

const PointwiseSpec kLosses[] = {
    {.type = "L2Loss",
     .inputs = {{"x"}},
     .real = [](const double* in, const C&, double* out) { out[0] = in[0] * in[0] / 2; },
     .gathered = Gathered::kSum},
    {.type = "MseLoss",
     .inputs = kPredictLabel,
     .real = [](const double* in, const C&,
                double* out) { out[0] = (in[0] - in[1]) * (in[0] - in[1]); },
     .attrs = {kReduction},
     .text = "reduction",
     .words = kReductions,
     .gathered = Gathered::kByAttr},
    {.type = "MseLossGrad",
     .inputs = kPredictLabelGrad,
     .real = [](const double* in, const C& c,
                double* out) { out[0] = 2 * (in[0] - in[1]) * in[2] / MeanDivisor(c, c.attr[0]); },
     .attrs = {kReduction},
     .data = 2,
     .text = "reduction",
     .words = kReductions},
    {.type = "LpLoss",
     .inputs = kPredictLabel,
     .real = [](const double* in, const C& c,
                double* out) { out[0] = std::pow(std::fabs(in[0] - in[1]), c.attr[0]); },
     .attrs = {{"p", AttrValue::Int(1)}, kReduction},
     .text = "reduction",
     .words = kReductions,
     .gathered = Gathered::kByAttr},
    {.type = "SmoothL1Loss",
     .inputs = kPredictLabel,
     .real = [](const double* in, const C& c,
                double* out) { out[0] = SmoothL1(in[0] - in[1], c.attr[0]); },
     .attrs = {Float("sigma", 1.0f)},
     .outputs = {{"loss"}}},
    {.type = "SmoothL1LossV2",
     .inputs = kPredictLabel,
     .real = [](const double* in, const C& c,
                double* out) { out[0] = SmoothL1(in[0] - in[1], c.attr[0]); },
     .attrs = {Float("sigma", 1.0f), kReduction},
     .outputs = {{"loss"}},
     .text = "reduction",
     .words = kReductions,
     .gathered = Gathered::kByAttr},
    {.type = "SmoothL1LossGradV2",
     .inputs = kPredictLabelGrad,
     .real =
         [](const double* in, const C& c, double* out) {
           const double slope = std::clamp((in[0] - in[1]) / c.attr[0], -1.0, 1.0);
           out[0] = slope * in[2] / MeanDivisor(c, c.attr[1]);
         },
     .attrs = {Float("sigma", 1.0f), kReduction},
     .outputs = {{"gradient"}},
     .data = 2,
     .text = "reduction",
     .words = kReductions},
    {.type = "BinaryCrossEntropy",
     .inputs = {{"x"}, {"y"}, {"weight", PortKind::kOptional}},
     .real = [](const double* in, const C&,
                double* out) { out[0] = in[2] * BinaryCrossEntropy(in[0], in[1]); },
     .attrs = {kReduction},
     .outputs = {{"output"}},
     .data = 2,
     .absent = 1,
     .text = "reduction",
     .words = kReductions,
     .gathered = Gathered::kByAttr},
    // The denominator is kept from 0 as PyTorch does.
    {.type = "BinaryCrossEntropyGrad",
     .inputs = {{"x"}, {"y"}, {"grad_output"}, {"weight", PortKind::kOptional}},
     .real =
         [](const double* in, const C& c, double* out) {
           const double denominator = std::max((1 - in[0]) * in[0], 1e-12);
           out[0] = in[3] * in[2] * (in[0] - in[1]) / denominator / MeanDivisor(c, c.attr[0]);
         },
     .attrs = {kReduction},
     .outputs = {{"output"}},
     .data = 2,
     .absent = 1,
     .text = "reduction",
     .words = kReductions},
    {.type = "SigmoidCrossEntropyWithLogits",
     .inputs = {{"predict"}, {"target"}},
     .real = [](const double* in, const C&,
                double* out) { out[0] = Softplus(in[0]) - in[0] * in[1]; },
     .outputs = {{"loss"}}},
    {.type = "SigmoidCrossEntropyWithLogitsGrad",
     .inputs = {{"predict"}, {"target"}, {"dout"}},
     .real = [](const double* in, const C&,
                double* out) { out[0] = (Sigmoid(in[0]) - in[1]) * in[2]; },
     .outputs = {{"gradient"}}},
    // x holds logarithms; a target of 0 adds nothing.
    {.type = "KLDiv",
     .inputs = {{"x"}, {"target"}},
     .real = [](const double* in, const C&,
                double* out) { out[0] = in[1] > 0 ? in[1] * (std::log(in[1]) - in[0]) : 0; },
     .attrs = {{"reduction", Required::kString}},
     .text = "reduction",
     .words = kReductions,
     .gathered = Gathered::kByAttr},
    {.type = "SoftMarginLoss",
     .inputs = {{"input_x"}, {"input_y"}},
     .real = [](const double* in, const C&, double* out) { out[0] = Softplus(-in[0] * in[1]); },
     .attrs = {kReduction},
     .outputs = {{"output_z"}},
     .text = "reduction",
     .words = kReductions,
     .gathered = Gathered::kByAttr},
};

}  // namespace

void RegisterPointwiseGradientOps(OpRegistry& registry) {
  for (const PointwiseSpec& spec : kActivations) RegisterPointwise(registry, spec);
  for (const FunctionRow& row : kFunctions) {
    RegisterPointwise(registry, {.type = row.type,
                                 .inputs = {{"y"}, {"dy"}},
                                 .real = row.real,
                                 .attrs = row.attrs,
                                 .outputs = kZ,
                                 .like = 1});
  }
  for (const PointwiseSpec& spec : kLosses) RegisterPointwise(registry, spec);
}

}  // namespace npumesh
