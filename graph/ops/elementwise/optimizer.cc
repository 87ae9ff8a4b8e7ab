// Optimizers: one step of training on every element of a variable, in place on the variable and its
// slots.
//
// Interfaces whose name ends in D return the slots too; the others name only the variable, and
// their slots are updated all the same (Operator::in_place).
#include <cmath>

#include "graph/ops/elementwise/family.h"
#include "graph/ops/elementwise/pointwise.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

// var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
void Adam(const double* in, const C& c, double* out) {
  const double beta1 = in[6], beta2 = in[7], grad = in[9];
  const double rate = in[5] * std::sqrt(1 - in[4]) / (1 - in[3]);
  const double m = beta1 * in[1] + (1 - beta1) * grad;
  const double v = beta2 * in[2] + (1 - beta2) * grad * grad;
  const double direction = c[1] != 0 ? beta1 * m + (1 - beta1) * grad : m;
  out[0] = in[0] - rate * direction / (std::sqrt(v) + in[8]);
  out[1] = m;
  out[2] = v;
}

// var, m, v, beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, grad, max_grad_norm
//
// The powers are those of the step before, hence the factors on them.
void AdamW(const double* in, const C& c, double* out) {
  const bool amsgrad = c[0] != 0;
  const double grad = c[1] != 0 ? -in[10] : in[10];
  const double beta1 = in[7], beta2 = in[8];
  const double m = beta1 * in[1] + (1 - beta1) * grad;
  const double v = beta2 * in[2] + (1 - beta2) * grad * grad;
  const double most = std::fmax(in[11], v);
  const double m_hat = m / (1 - in[3] * beta1);
  const double v_hat = (amsgrad ? most : v) / (1 - in[4] * beta2);
  out[0] = in[0] * (1 - in[5] * in[6]) - in[5] * m_hat / (std::sqrt(v_hat) + in[9]);
  out[1] = m;
  out[2] = v;
  out[3] = amsgrad ? most : in[11];
}

// var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad
void AdaMax(const double* in, const C&, double* out) {
  out[1] = in[5] * in[1] + (1 - in[5]) * in[8];
  out[2] = std::fmax(in[6] * in[2], std::fabs(in[8]));
  out[0] = in[0] - in[4] / (1 - in[3]) * out[1] / (out[2] + in[7]);
}

// var, accum, lr, grad, momentum
void Momentum(const double* in, const C& c, double* out) {
  out[1] = in[4] * in[1] + in[3];
  const double direction = c[0] != 0 ? in[3] + in[4] * out[1] : out[1];
  out[0] = in[0] - in[2] * direction;
}

// var, accum, lr, grad, momentum; here the slot holds the step itself.
void KerasMomentum(const double* in, const C& c, double* out) {
  out[1] = in[4] * in[1] - in[2] * in[3];
  out[0] = in[0] + (c[1] != 0 ? in[4] * out[1] - in[2] * in[3] : out[1]);
}

// parameters, gradient, learning_rate, accum, momentum, stat; stat is 1 at the first step, which is
// not damped. Without momentum the slots stay as they are.
void Sgd(const double* in, const C& c, double* out) {
  const double dampening = c[0], weight_decay = c[1], momentum = in[4];
  const double grad = in[1] + weight_decay * in[0];
  const double accum = momentum * in[3] + grad - (1 - in[5]) * dampening * grad;
  const bool slots = momentum != 0;
  const double direction = !slots ? grad : c[2] != 0 ? grad + momentum * accum : accum;
  out[0] = in[0] - in[2] * direction;
  out[1] = slots ? accum : in[3];
  out[2] = slots ? 0 : in[5];
}

// One step with var, ms, mom and the constants.
void RmsProp(const double* in, double rho, double momentum, double epsilon, double grad,
             double* out) {
  out[1] = in[1] + (1 - rho) * (grad * grad - in[1]);
  out[2] = momentum * in[2] + in[3] * grad / std::sqrt(out[1] + epsilon);
  out[0] = in[0] - out[2];
}

// var, mg, ms, mom, lr, rho, momentum, epsilon, grad
void CenteredRmsProp(const double* in, const C&, double* out) {
  const double rho = in[5], grad = in[8];
  out[1] = rho * in[1] + (1 - rho) * grad;
  out[2] = rho * in[2] + (1 - rho) * grad * grad;
  out[3] = in[6] * in[3] + in[4] * grad / std::sqrt(out[2] - out[1] * out[1] + in[7]);
  out[0] = in[0] - out[3];
}

// var, accum, lr, grad
void Adagrad(const double* in, const C& c, double* out) {
  out[1] = c[0] != 0 ? in[1] + in[3] * in[3] : in[1];
  out[0] = in[0] - in[2] * in[3] / std::sqrt(out[1]);
}

// var, accum, accum_update, lr, rho, epsilon, grad
void Adadelta(const double* in, const C&, double* out) {
  const double rho = in[4], epsilon = in[5], grad = in[6];
  out[1] = rho * in[1] + (1 - rho) * grad * grad;
  const double update = std::sqrt(in[2] + epsilon) / std::sqrt(out[1] + epsilon) * grad;
  out[2] = rho * in[2] + (1 - rho) * update * update;
  out[0] = in[0] - in[3] * update;
}

// var, accum, linear, grad, lr, l1, l2, lr_power
void Ftrl(const double* in, const C&, double* out) {
  const double grad = in[3], rate = in[4];
  out[1] = in[1] + grad * grad;
  const double power = std::pow(out[1], -in[7]);
  const double sigma = (power - std::pow(in[1], -in[7])) / rate;
  out[2] = in[2] + grad - sigma * in[0];
  const double quadratic = power / rate + 2 * in[6];
  const double beyond = std::copysign(in[5], out[2]) - out[2];
  out[0] = std::fabs(out[2]) > in[5] ? beyond / quadratic : 0;
}

double SignOf(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

// var, m, lr, logbase, sign_decay, beta, grad
void PowerSign(const double* in, const C&, double* out) {
  out[1] = in[5] * in[1] + (1 - in[5]) * in[6];
  const double agreement = SignOf(in[6]) * SignOf(out[1]);
  out[0] = in[0] - in[2] * std::exp(in[3] * in[4] * agreement) * in[6];
}

// var, m, lr, alpha, sign_decay, beta, grad
void AddSign(const double* in, const C&, double* out) {
  out[1] = in[5] * in[1] + (1 - in[5]) * in[6];
  const double agreement = SignOf(in[6]) * SignOf(out[1]);
  out[0] = in[0] - in[2] * (in[3] + in[4] * agreement) * in[6];
}

// One step, to which l1 and l2 come.
double Proximal(double step, double rate, double l1, double l2) {
  const double rest = std::fmax(std::fabs(step) - rate * l1, 0);
  return SignOf(step) * rest / (1 + rate * l2);
}

const PointwiseSpec kOptimizers[] = {
    {"ApplyAdam(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad; "
     "use_locking=false, use_nesterov=false) -> var",
     Adam,
     {.updates = {0, 1, 2}}},
    {"ApplyAdamD(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad; "
     "use_locking=false, use_nesterov=false) -> var, m, v",
     Adam,
     {.updates = {0, 1, 2}}},
    {"ApplyAdamW(var, m, v, beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, "
     "grad, max_grad_norm?; amsgrad=false, maximize=false) -> var, m, v",
     AdamW,
     {.updates = {0, 1, 2, 11}}},
    {"ApplyAdaMax(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad; use_locking=false) -> "
     "var",
     AdaMax,
     {.updates = {0, 1, 2}}},
    {"ApplyMomentum(var, accum, lr, grad, momentum; use_nesterov=false, use_locking=false) -> var",
     Momentum,
     {.updates = {0, 1}}},
    {"ApplyMomentumD(var, accum, lr, grad, momentum; use_nesterov=false, use_locking=false) -> "
     "var, accum",
     Momentum,
     {.updates = {0, 1}}},
    {"ApplyKerasMomentum(var, accum, lr, grad, momentum; use_locking=false, use_nesterov=false) -> "
     "var",
     KerasMomentum,
     {.updates = {0, 1}}},
    {"SGD(parameters, gradient, learning_rate, accum, momentum, stat; dampening=0.0, "
     "weight_decay=0.0, nesterov=false) -> parameters",
     Sgd,
     {.updates = {0, 3, 5}}},
    {"ApplyGradientDescent(var, alpha, delta; use_locking=false) -> var",
     [](double var, double alpha, double delta) { return var - alpha * delta; },
     {.updates = {0}}},
    {"ApplyProximalGradientDescent(var, alpha, l1, l2, delta; use_locking=false) -> var",
     [](const double* in, const C&) {
       return Proximal(in[0] - in[1] * in[4], in[1], in[2], in[3]);
     },
     {.updates = {0}}},
    {"ApplyRMSProp(var, ms, mom, lr, rho, momentum, epsilon, grad; use_locking=false) -> var",
     [](const double* in, const C&, double* out) { RmsProp(in, in[4], in[5], in[6], in[7], out); },
     {.updates = {0, 1, 2}}},
    {"ApplyRMSPropD(var, ms, mom, lr, grad; rho:float, momentum:float, epsilon:float, "
     "use_locking=false) -> var, ms, mom",
     [](const double* in, const C& c, double* out) { RmsProp(in, c[0], c[1], c[2], in[4], out); },
     {.updates = {0, 1, 2}}},
    {"ApplyCenteredRMSProp(var, mg, ms, mom, lr, rho, momentum, epsilon, grad; use_locking=false) "
     "-> var",
     CenteredRmsProp,
     {.updates = {0, 1, 2, 3}}},
    {"ApplyAdagrad(var, accum, lr, grad; update_slots=true, use_locking=false) -> var",
     Adagrad,
     {.updates = {0, 1}}},
    {"ApplyAdagradD(var, accum, lr, grad; update_slots=true, use_locking=false) -> var, accum",
     Adagrad,
     {.updates = {0, 1}}},
    {"ApplyAdadelta(var, accum, accum_update, lr, rho, epsilon, grad; use_locking=false) -> var",
     Adadelta,
     {.updates = {0, 1, 2}}},
    {"ApplyFtrl(var, accum, linear, grad, lr, l1, l2, lr_power; use_locking=false) -> var",
     Ftrl,
     {.updates = {0, 1, 2}}},
    {"ApplyPowerSign(var, m, lr, logbase, sign_decay, beta, grad; use_locking=false) -> var",
     PowerSign,
     {.updates = {0, 1}}},
    {"ApplyAddSign(var, m, lr, alpha, sign_decay, beta, grad; use_locking=false) -> var",
     AddSign,
     {.updates = {0, 1}}},
};

}  // namespace

void RegisterOptimizerOps(OpRegistry& registry) {
  RegisterPointwise(registry, kOptimizers);
}

}  // namespace npumesh
