// Gradients of point-wise operators and losses taken point by point.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/ops/elementwise/family.h"
#include "graph/ops/elementwise/pointwise.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

double GeluTanhSlope(double x) {
  const double t = std::tanh(kRootTwoOverPi * (x + kGeluCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kRootTwoOverPi * (1 + 3 * kGeluCubic * x * x);
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

double SoftsignGrad(double grad, double x) {
  const double root = 1 + std::fabs(x);
  return grad / (root * root);
}

double EluGrad(double grad, double x, const C& c) {
  const double alpha = c[0], scale = c[1], input_scale = c[2];
  const double below = c[3] != 0 ? input_scale * (x + scale * alpha)
                                 : input_scale * scale * alpha * std::exp(input_scale * x);
  return grad * (x <= 0 ? below : scale);
}

double HardSigmoidGrad(double grad, double x, double alpha, double beta) {
  const double y = alpha * x + beta;
  return y > 0 && y < 1 ? grad * alpha : 0;
}

// Of activations: (gradient, value of the forward pass). Results have the type of the gradient.
const PointwiseSpec kActivations[] = {
    {"ReluGrad(gradients, features) -> backprops",
     [](double grad, double x) { return x > 0 ? grad : 0; },
     {.integer = [](WideInt grad, WideInt x) { return x > 0 ? grad : 0; }}},
    {"Relu6Grad(gradients, features) -> backprops",
     [](double grad, double x) { return x > 0 && x < 6 ? grad : 0; }},
    {"ThresholdGradV2D(gradients, features; threshold:float) -> backprops",
     [](double grad, double x, const C& c) { return x > c[0] ? grad : 0; },
     {.truncates = true}},
    {"LeakyReluGrad(gradients, features; negative_slope=0.0) -> backprops",
     [](double grad, double x, const C& c) { return x > 0 ? grad : c[0] * grad; }},
    {"SoftplusGrad(gradients, features) -> backprops",
     [](double grad, double x) { return grad * Sigmoid(x); }},
    {"LogSigmoidGrad(grads, features) -> backprops",
     [](double grad, double x) { return grad * Sigmoid(-x); }},
    {"SoftsignGrad(gradients, features) -> output",
     [](double grad, double x) { return SoftsignGrad(grad, x); }},
    {"EluGradV2(grads, activations; alpha=1.0, scale=1.0, input_scale=1.0, is_result=false) -> y",
     [](double grad, double x, const C& c) { return EluGrad(grad, x, c); }},
    {"GeluGrad(dy, x, y) -> z",
     [](double grad, double x, double) { return grad * GeluTanhSlope(x); }},
    {"GeluGradV2(dy, x; approximate=\"none\") -> z",
     [](double grad, double x, const C& c) {
       return grad * (c[0] == 0 ? GeluErfSlope(x) : GeluTanhSlope(x));
     },
     {.words = {"none", "tanh"}}},
    {"FastGeluGrad(dy, x) -> z",
     [](double grad, double x) { return grad * SwishSlope(x, kFastGeluScale); }},
    {"SwishGrad(grad, x, y; scale=1.0) -> grad_x",
     [](double grad, double x, double, const C& c) { return grad * SwishSlope(x, c[0]); }},
    {"MishGrad(grad, x, tanhx?) -> x_grad",
     [](double grad, double x) { return grad * MishSlope(x); }},
    {"HardSwishGrad(grad, x) -> y",
     [](double grad, double x) {
       return grad * (x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5);
     }},
    {"HardSigmoidGrad(grads, input_x; alpha=0.16666666, beta=0.5) -> y",
     [](double grad, double x, const C& c) { return HardSigmoidGrad(grad, x, c[0], c[1]); }},
};

// Of functions: (y, gradient), where y is the result of the forward pass, or its argument where
// noted. Results have the type of the gradient.
const PointwiseSpec kFunctions[] = {
    {"HardtanhGrad(result, grad; min_val=-1.0, max_val=1.0) -> y",
     [](double y, double grad, const C& c) { return y > c[0] && y < c[1] ? grad : 0; }},
    {"SigmoidGrad(y, dy; complex_conj=false) -> z",
     [](double y, double dy) { return dy * y * (1 - y); }},
    {"TanhGrad(y, dy; complex_conj=false) -> z",
     [](double y, double dy) { return dy * (1 - y * y); }},
    {"SqrtGrad(y, dy) -> z", [](double y, double dy) { return dy * 0.5 / y; }},
    {"RsqrtGrad(y, dy) -> z", [](double y, double dy) { return -0.5 * dy * y * y * y; }},
    {"ReciprocalGrad(y, dy) -> z", [](double y, double dy) { return -dy * y * y; }},
    {"AsinhGrad(y, dy) -> z", [](double y, double dy) { return dy / std::cosh(y); }},
    {"AcoshGrad(y, dy) -> z", [](double y, double dy) { return dy / std::sinh(y); }},
    // y is the argument
    {"AsinGrad(y, dy) -> z", [](double x, double dy) { return dy / std::sqrt(1 - x * x); }},
    {"AcosGrad(y, dy) -> z", [](double x, double dy) { return -dy / std::sqrt(1 - x * x); }},
    {"AtanGrad(y, dy) -> z", [](double x, double dy) { return dy / (1 + x * x); }},
    {"AbsGrad(y, dy) -> z", [](double x, double dy) { return x > 0   ? dy
                                                             : x < 0 ? -dy
                                                                     : 0; }},
};

// ---- losses and their gradients ----

// The logarithm of a probability, which PyTorch keeps above -100.
double LogOf(double probability) {
  return std::max(std::log(probability), -100.0);
}

double BinaryCrossEntropy(double x, double y) {
  return -(y * LogOf(x) + (1 - y) * LogOf(1 - x));
}

// The denominator is kept from 0 as PyTorch does.
double BinaryCrossEntropySlope(double x, double y, double grad) {
  return grad * (x - y) / std::max((1 - x) * x, 1e-12);
}

double SmoothL1(double distance, double sigma) {
  const double d = std::fabs(distance);
  return d < sigma ? 0.5 * d * d / sigma : d - 0.5 * sigma;
}

// What a gradient is divided by: the elements when the loss was a mean.
double MeanDivisor(const C& c, double word) {
  return word == 1 ? static_cast<double>(c.elements) : 1;
}

const PointwiseSpec kLosses[] = {
    {"L2Loss(x) -> y", [](double x) { return x * x / 2; }, {.gathered = Gathered::kSum}},
    {"MseLoss(predict, label; reduction=\"mean\") -> y",
     [](double x, double label) { return (x - label) * (x - label); },
     {.gathered = Gathered::kByAttr}},
    {"MseLossGrad(predict, label, dout; reduction=\"mean\") -> y",
     [](double x, double label, double grad, const C& c) {
       return 2 * (x - label) * grad / MeanDivisor(c, c[0]);
     },
     {.data = 2}},
    {"LpLoss(predict, label; p=1, reduction=\"mean\") -> y",
     [](double x, double label, const C& c) { return std::pow(std::fabs(x - label), c[0]); },
     {.gathered = Gathered::kByAttr}},
    {"SmoothL1Loss(predict, label; sigma=1.0) -> loss",
     [](double x, double label, const C& c) { return SmoothL1(x - label, c[0]); }},
    {"SmoothL1LossV2(predict, label; sigma=1.0, reduction=\"mean\") -> loss",
     [](double x, double label, const C& c) { return SmoothL1(x - label, c[0]); },
     {.gathered = Gathered::kByAttr}},
    {"SmoothL1LossGradV2(predict, label, dout; sigma=1.0, reduction=\"mean\") -> gradient",
     [](double x, double label, double grad, const C& c) {
       return std::clamp((x - label) / c[0], -1.0, 1.0) * grad / MeanDivisor(c, c[1]);
     },
     {.data = 2}},
    {"BinaryCrossEntropy(x, y, weight?; reduction=\"mean\") -> output",
     [](double x, double y, double weight) { return weight * BinaryCrossEntropy(x, y); },
     {.data = 2, .absent = 1, .gathered = Gathered::kByAttr}},
    {"BinaryCrossEntropyGrad(x, y, grad_output, weight?; reduction=\"mean\") -> output",
     [](double x, double y, double grad, double weight, const C& c) {
       return BinaryCrossEntropySlope(x, y, weight * grad) / MeanDivisor(c, c[0]);
     },
     {.data = 2, .absent = 1}},
    {"SigmoidCrossEntropyWithLogits(predict, target) -> loss",
     [](double x, double target) { return Softplus(x) - x * target; }},
    {"SigmoidCrossEntropyWithLogitsGrad(predict, target, dout) -> gradient",
     [](double x, double target, double grad) { return (Sigmoid(x) - target) * grad; }},
    // x holds logarithms; a target of 0 adds nothing.
    {"KLDiv(x, target; reduction:string) -> y",
     [](double x, double target) { return target > 0 ? target * (std::log(target) - x) : 0; },
     {.gathered = Gathered::kByAttr}},
    {"SoftMarginLoss(input_x, input_y; reduction=\"mean\") -> output_z",
     [](double x, double y) { return Softplus(-x * y); },
     {.gathered = Gathered::kByAttr}},
};

}  // namespace

void RegisterPointwiseGradientOps(OpRegistry& registry) {
  RegisterPointwise(registry, kActivations, /*like=*/0);
  RegisterPointwise(registry, kFunctions, /*like=*/1);
  OpRegistry losses;
  RegisterPointwise(losses, kLosses);
  registry.AddAll(losses, PrecisionClass::kBlack);
}

}  // namespace npumesh
