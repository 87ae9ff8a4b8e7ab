// Gradients of point-wise operators and losses taken point by point.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/elementwise/pointwise.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

template <Real D>
D GeluTanhSlope(D x) {
  const D t = TanhOf(kRootTwoOverPi * (x + kGeluCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kRootTwoOverPi * (1 + 3 * kGeluCubic * x * x);
}

// Phi(x) + x phi(x) of the normal distribution.
template <Real D>
D GeluErfSlope(D x) {
  const D density = ExpOf(-x * x / 2) * std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2;
  return 0.5 * ErfcOf(-x / std::numbers::sqrt2) + x * density;
}

// d/dx of x sigmoid(scale x).
template <Real D>
D SwishSlope(D x, double scale) {
  const D s = Sigmoid(scale * x);
  return s * (1 + scale * x * (1 - s));
}

template <Real D>
D MishSlope(D x) {
  const D t = TanhOf(Softplus(x));
  return t + x * (1 - t * t) * Sigmoid(x);
}

template <Real D>
D SoftsignGrad(D grad, D x) {
  const D root = 1 + Magnitude(x);
  return grad / (root * root);
}

template <Real D>
D EluGrad(D grad, D x, const C& c) {
  const double alpha = c[0], scale = c[1], input_scale = c[2];
  const D below = c[3] != 0 ? input_scale * (x + scale * alpha)
                            : input_scale * scale * alpha * ExpOf(input_scale * x);
  return grad * Where(x <= 0, below, scale);
}

template <Real D>
D HardSigmoidGrad(D grad, D x, double alpha, double beta) {
  const D y = alpha * x + beta;
  return Where(Both(y > 0, y < 1), grad * alpha, 0);
}

// Of activations: (gradient, value of the forward pass). Results have the type of the gradient.
const PointwiseSpec kActivations[] = {
    {"ReluGrad(gradients, features) -> backprops",
     [](Real auto grad, Real auto x) { return Where(x > 0, grad, 0); },
     {.integer = [](WideInt grad, WideInt x) { return x > 0 ? grad : 0; }}},
    {"Relu6Grad(gradients, features) -> backprops",
     [](Real auto grad, Real auto x) { return Where(Both(x > 0, x < 6), grad, 0); }},
    {"ThresholdGradV2D(gradients, features; threshold:float) -> backprops",
     [](Real auto grad, Real auto x, const C& c) { return Where(x > c[0], grad, 0); },
     {.truncates = true}},
    {"LeakyReluGrad(gradients, features; negative_slope=0.0) -> backprops",
     [](Real auto grad, Real auto x, const C& c) { return Where(x > 0, grad, c[0] * grad); }},
    {"SoftplusGrad(gradients, features) -> backprops",
     [](Real auto grad, Real auto x) { return grad * Sigmoid(x); }},
    {"LogSigmoidGrad(grads, features) -> backprops",
     [](Real auto grad, Real auto x) { return grad * Sigmoid(-x); }},
    {"SoftsignGrad(gradients, features) -> output",
     [](Real auto grad, Real auto x) { return SoftsignGrad(grad, x); }},
    {"EluGradV2(grads, activations; alpha=1.0, scale=1.0, input_scale=1.0, is_result=false) -> y",
     [](Real auto grad, Real auto x, const C& c) { return EluGrad(grad, x, c); }},
    {"GeluGrad(dy, x, y) -> z",
     [](Real auto grad, Real auto x, Real auto) { return grad * GeluTanhSlope(x); }},
    {"GeluGradV2(dy, x; approximate=\"none\") -> z",
     [](Real auto grad, Real auto x, const C& c) {
       return grad * (c[0] == 0 ? GeluErfSlope(x) : GeluTanhSlope(x));
     },
     {.words = {"none", "tanh"}}},
    {"FastGeluGrad(dy, x) -> z",
     [](Real auto grad, Real auto x) { return grad * SwishSlope(x, kFastGeluScale); }},
    {"SwishGrad(grad, x, y; scale=1.0) -> grad_x",
     [](Real auto grad, Real auto x, Real auto, const C& c) { return grad * SwishSlope(x, c[0]); }},
    {"MishGrad(grad, x, tanhx?) -> x_grad",
     [](Real auto grad, Real auto x) { return grad * MishSlope(x); }},
    {"HardSwishGrad(grad, x) -> y",
     [](Real auto grad, Real auto x) {
       return grad * Where(x <= -3, 0, Where(x >= 3, 1, x / 3 + 0.5));
     }},
    {"HardSigmoidGrad(grads, input_x; alpha=0.16666666, beta=0.5) -> y",
     [](Real auto grad, Real auto x, const C& c) { return HardSigmoidGrad(grad, x, c[0], c[1]); }},
};

// Of functions: (y, gradient), where y is the result of the forward pass, or its argument where
// noted. Results have the type of the gradient.
const PointwiseSpec kFunctions[] = {
    {"HardtanhGrad(result, grad; min_val=-1.0, max_val=1.0) -> y",
     [](Real auto y, Real auto grad, const C& c) {
       return Where(Both(y > c[0], y < c[1]), grad, 0);
     }},
    {"SigmoidGrad(y, dy; complex_conj=false) -> z",
     [](Real auto y, Real auto dy) { return dy * y * (1 - y); }},
    {"TanhGrad(y, dy; complex_conj=false) -> z",
     [](Real auto y, Real auto dy) { return dy * (1 - y * y); }},
    {"SqrtGrad(y, dy) -> z", [](Real auto y, Real auto dy) { return dy * 0.5 / y; }},
    {"RsqrtGrad(y, dy) -> z", [](Real auto y, Real auto dy) { return -0.5 * dy * y * y * y; }},
    {"ReciprocalGrad(y, dy) -> z", [](Real auto y, Real auto dy) { return -dy * y * y; }},
    {"AsinhGrad(y, dy) -> z", [](Real auto y, Real auto dy) { return dy / CoshOf(y); }},
    {"AcoshGrad(y, dy) -> z", [](Real auto y, Real auto dy) { return dy / SinhOf(y); }},
    // y is the argument
    {"AsinGrad(y, dy) -> z", [](Real auto x, Real auto dy) { return dy / RootOf(1 - x * x); }},
    {"AcosGrad(y, dy) -> z", [](Real auto x, Real auto dy) { return -dy / RootOf(1 - x * x); }},
    {"AtanGrad(y, dy) -> z", [](Real auto x, Real auto dy) { return dy / (1 + x * x); }},
    {"AbsGrad(y, dy) -> z",
     [](Real auto x, Real auto dy) { return Where(x > 0, dy, Where(x < 0, -dy, 0)); }},
};

// ---- losses and their gradients ----

// The logarithm of a probability, which PyTorch keeps above -100.
template <Real D>
D BoundedLog(D probability) {
  const D log = LogOf(probability);
  return Where(log < -100, -100, log);
}

template <Real D>
D BinaryCrossEntropy(D x, D y) {
  return -(y * BoundedLog(x) + (1 - y) * BoundedLog(1 - x));
}

// The denominator is kept from 0 as PyTorch does.
template <Real D>
D BinaryCrossEntropySlope(D x, D y, D grad) {
  const D variance = (1 - x) * x;
  return grad * (x - y) / Where(variance < 1e-12, 1e-12, variance);
}

template <Real D>
D SmoothL1(D distance, double sigma) {
  const D d = Magnitude(distance);
  return Where(d < sigma, 0.5 * d * d / sigma, d - 0.5 * sigma);
}

// What a gradient is divided by: the elements when the loss was a mean.
double MeanDivisor(const C& c, double word) {
  return word == 1 ? static_cast<double>(c.elements) : 1;
}

const PointwiseSpec kLosses[] = {
    {"L2Loss(x) -> y", [](double x) { return x * x / 2; }, {.gathered = Gathered::kSum}},
    {"MseLoss(predict, label; reduction=\"mean\") -> y",
     [](Real auto x, Real auto label) { return (x - label) * (x - label); },
     {.gathered = Gathered::kByAttr}},
    {"MseLossGrad(predict, label, dout; reduction=\"mean\") -> y",
     [](Real auto x, Real auto label, Real auto grad, const C& c) {
       return 2 * (x - label) * grad / MeanDivisor(c, c[0]);
     },
     {.data = 2}},
    {"LpLoss(predict, label; p=1, reduction=\"mean\") -> y",
     [](Real auto x, Real auto label, const C& c) { return PowOf(Magnitude(x - label), c[0]); },
     {.gathered = Gathered::kByAttr}},
    {"SmoothL1Loss(predict, label; sigma=1.0) -> loss",
     [](Real auto x, Real auto label, const C& c) { return SmoothL1(x - label, c[0]); }},
    {"SmoothL1LossV2(predict, label; sigma=1.0, reduction=\"mean\") -> loss",
     [](Real auto x, Real auto label, const C& c) { return SmoothL1(x - label, c[0]); },
     {.gathered = Gathered::kByAttr}},
    {"SmoothL1LossGradV2(predict, label, dout; sigma=1.0, reduction=\"mean\") -> gradient",
     [](Real auto x, Real auto label, Real auto grad, const C& c) {
       const auto slope = (x - label) / c[0];
       return Where(slope < -1, -1, Where(slope > 1, 1, slope)) * grad / MeanDivisor(c, c[1]);
     },
     {.data = 2}},
    {"BinaryCrossEntropy(x, y, weight?; reduction=\"mean\") -> output",
     [](Real auto x, Real auto y, Real auto weight) { return weight * BinaryCrossEntropy(x, y); },
     {.data = 2, .absent = 1, .gathered = Gathered::kByAttr}},
    {"BinaryCrossEntropyGrad(x, y, grad_output, weight?; reduction=\"mean\") -> output",
     [](Real auto x, Real auto y, Real auto grad, Real auto weight, const C& c) {
       return BinaryCrossEntropySlope(x, y, weight * grad) / MeanDivisor(c, c[0]);
     },
     {.data = 2, .absent = 1}},
    {"SigmoidCrossEntropyWithLogits(predict, target) -> loss",
     [](Real auto x, Real auto target) { return Softplus(x) - x * target; }},
    {"SigmoidCrossEntropyWithLogitsGrad(predict, target, dout) -> gradient",
     [](Real auto x, Real auto target, Real auto grad) { return (Sigmoid(x) - target) * grad; }},
    // x holds logarithms; a target of 0 adds nothing.
    {"KLDiv(x, target; reduction:string) -> y",
     [](Real auto x, Real auto target) {
       return Where(target > 0, target * (LogOf(target) - x), 0);
     },
     {.gathered = Gathered::kByAttr}},
    {"SoftMarginLoss(input_x, input_y; reduction=\"mean\") -> output_z",
     [](Real auto x, Real auto y) { return Softplus(-x * y); },
     {.gathered = Gathered::kByAttr}},
};

}  // namespace

void RegisterPointwiseGradientOps(OpRegistry& registry) {
  RegisterPointwise(registry, kActivations, /*like=*/0);
  RegisterPointwise(registry, kFunctions, /*like=*/1);
  registry.Usually(PrecisionClass::kBlack);
  RegisterPointwise(registry, kLosses);
}

}  // namespace npumesh
