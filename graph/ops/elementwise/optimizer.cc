// Optimizers: one step of training on every element of a variable, in place on the variable and its
// slots.
//
// Interfaces whose name ends in D return the slots too; the others name only the variable, and
// their slots are updated all the same (Operator::in_place).
#include <array>
#include <cmath>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/elementwise/pointwise.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

// Each formula takes the inputs of its operator under their names, and gives the new values of what
// the operator updates, in the order of PointwiseTraits::updates.

constexpr auto kAdam = [](double var, double m, double v, double beta1_power, double beta2_power,
                          double lr, double beta1, double beta2, double epsilon, double grad,
                          const C& c) {
  const double rate = lr * std::sqrt(1 - beta2_power) / (1 - beta1_power);
  m = beta1 * m + (1 - beta1) * grad;
  v = beta2 * v + (1 - beta2) * grad * grad;
  const double direction = c[1] != 0 ? beta1 * m + (1 - beta1) * grad : m;
  return std::array{var - rate * direction / (std::sqrt(v) + epsilon), m, v};
};

// The powers are those of the step before, hence the factors on them.
constexpr auto kAdamW = [](double var, double m, double v, double beta1_power, double beta2_power,
                           double lr, double weight_decay, double beta1, double beta2,
                           double epsilon, double grad, double max_grad_norm, const C& c) {
  const bool amsgrad = c[0] != 0;
  if (c[1] != 0) grad = -grad;
  m = beta1 * m + (1 - beta1) * grad;
  v = beta2 * v + (1 - beta2) * grad * grad;
  const double most = std::fmax(max_grad_norm, v);
  const double m_hat = m / (1 - beta1_power * beta1);
  const double v_hat = (amsgrad ? most : v) / (1 - beta2_power * beta2);
  var = var * (1 - lr * weight_decay) - lr * m_hat / (std::sqrt(v_hat) + epsilon);
  return std::array{var, m, v, amsgrad ? most : max_grad_norm};
};

constexpr auto kAdaMax = [](double var, double m, double v, double beta1_power, double lr,
                            double beta1, double beta2, double epsilon, double grad) {
  m = beta1 * m + (1 - beta1) * grad;
  v = std::fmax(beta2 * v, std::fabs(grad));
  return std::array{var - lr / (1 - beta1_power) * m / (v + epsilon), m, v};
};

constexpr auto kMomentum = [](double var, double accum, double lr, double grad, double momentum,
                              const C& c) {
  accum = momentum * accum + grad;
  const double direction = c[0] != 0 ? grad + momentum * accum : accum;
  return std::array{var - lr * direction, accum};
};

// Here the slot holds the step itself.
constexpr auto kKerasMomentum = [](double var, double accum, double lr, double grad,
                                   double momentum, const C& c) {
  accum = momentum * accum - lr * grad;
  return std::array{var + (c[1] != 0 ? momentum * accum - lr * grad : accum), accum};
};

// stat is 1 at the first step, which is not damped. Without momentum the slots stay as they are.
constexpr auto kSgd = [](double parameters, double gradient, double learning_rate, double accum,
                         double momentum, double stat, const C& c) {
  const double dampening = c[0], weight_decay = c[1];
  const double grad = gradient + weight_decay * parameters;
  const double moved = momentum * accum + grad - (1 - stat) * dampening * grad;
  const bool slots = momentum != 0;
  const double direction = !slots ? grad : c[2] != 0 ? grad + momentum * moved : moved;
  return std::array{parameters - learning_rate * direction, slots ? moved : accum,
                    slots ? 0 : stat};
};

constexpr auto kRmsProp = [](double var, double ms, double mom, double lr, double rho,
                             double momentum, double epsilon, double grad) {
  ms = ms + (1 - rho) * (grad * grad - ms);
  mom = momentum * mom + lr * grad / std::sqrt(ms + epsilon);
  return std::array{var - mom, ms, mom};
};

constexpr auto kCenteredRmsProp = [](double var, double mg, double ms, double mom, double lr,
                                     double rho, double momentum, double epsilon, double grad) {
  mg = rho * mg + (1 - rho) * grad;
  ms = rho * ms + (1 - rho) * grad * grad;
  mom = momentum * mom + lr * grad / std::sqrt(ms - mg * mg + epsilon);
  return std::array{var - mom, mg, ms, mom};
};

constexpr auto kAdagrad = [](double var, double accum, double lr, double grad, const C& c) {
  if (c[0] != 0) accum = accum + grad * grad;
  return std::array{var - lr * grad / std::sqrt(accum), accum};
};

constexpr auto kAdadelta = [](double var, double accum, double accum_update, double lr, double rho,
                              double epsilon, double grad) {
  accum = rho * accum + (1 - rho) * grad * grad;
  const double update = std::sqrt(accum_update + epsilon) / std::sqrt(accum + epsilon) * grad;
  accum_update = rho * accum_update + (1 - rho) * update * update;
  return std::array{var - lr * update, accum, accum_update};
};

constexpr auto kFtrl = [](double var, double accum, double linear, double grad, double lr,
                          double l1, double l2, double lr_power) {
  const double squares = accum + grad * grad;
  const double power = std::pow(squares, -lr_power);
  const double sigma = (power - std::pow(accum, -lr_power)) / lr;
  linear = linear + grad - sigma * var;
  const double quadratic = power / lr + 2 * l2;
  const double beyond = std::copysign(l1, linear) - linear;
  return std::array{std::fabs(linear) > l1 ? beyond / quadratic : 0, squares, linear};
};

double SignOf(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : 0;
}

constexpr auto kPowerSign = [](double var, double m, double lr, double logbase, double sign_decay,
                               double beta, double grad) {
  m = beta * m + (1 - beta) * grad;
  const double agreement = SignOf(grad) * SignOf(m);
  return std::array{var - lr * std::exp(logbase * sign_decay * agreement) * grad, m};
};

constexpr auto kAddSign = [](double var, double m, double lr, double alpha, double sign_decay,
                             double beta, double grad) {
  m = beta * m + (1 - beta) * grad;
  const double agreement = SignOf(grad) * SignOf(m);
  return std::array{var - lr * (alpha + sign_decay * agreement) * grad, m};
};

// One step, to which l1 and l2 come.
constexpr auto kProximal = [](double var, double alpha, double l1, double l2, double delta) {
  const double step = var - alpha * delta;
  const double rest = std::fmax(std::fabs(step) - alpha * l1, 0);
  return SignOf(step) * rest / (1 + alpha * l2);
};

// What an operator updates: its variable, with the slots that follow it.
const PointwiseTraits kVariable = {.updates = {0}};
const PointwiseTraits kOneSlot = {.updates = {0, 1}};
const PointwiseTraits kTwoSlots = {.updates = {0, 1, 2}};

const PointwiseSpec kOptimizers[] = {
    {"ApplyAdam(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad; "
     "use_locking=false, use_nesterov=false) -> var",
     kAdam, kTwoSlots},
    {"ApplyAdamD(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad; "
     "use_locking=false, use_nesterov=false) -> var, m, v",
     kAdam, kTwoSlots},
    {"ApplyAdamW(var, m, v, beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, "
     "grad, max_grad_norm?; amsgrad=false, maximize=false) -> var, m, v",
     kAdamW,
     {.updates = {0, 1, 2, 11}}},
    {"ApplyAdaMax(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad; use_locking=false) -> "
     "var",
     kAdaMax, kTwoSlots},
    {"ApplyMomentum(var, accum, lr, grad, momentum; use_nesterov=false, use_locking=false) -> var",
     kMomentum, kOneSlot},
    {"ApplyMomentumD(var, accum, lr, grad, momentum; use_nesterov=false, use_locking=false) -> "
     "var, accum",
     kMomentum, kOneSlot},
    {"ApplyKerasMomentum(var, accum, lr, grad, momentum; use_locking=false, use_nesterov=false) -> "
     "var",
     kKerasMomentum, kOneSlot},
    {"SGD(parameters, gradient, learning_rate, accum, momentum, stat; dampening=0.0, "
     "weight_decay=0.0, nesterov=false) -> parameters",
     kSgd,
     {.updates = {0, 3, 5}}},
    {"ApplyGradientDescent(var, alpha, delta; use_locking=false) -> var",
     [](double var, double alpha, double delta) { return var - alpha * delta; }, kVariable},
    {"ApplyProximalGradientDescent(var, alpha, l1, l2, delta; use_locking=false) -> var", kProximal,
     kVariable},
    {"ApplyRMSProp(var, ms, mom, lr, rho, momentum, epsilon, grad; use_locking=false) -> var",
     kRmsProp, kTwoSlots},
    {"ApplyRMSPropD(var, ms, mom, lr, grad; rho:float, momentum:float, epsilon:float, "
     "use_locking=false) -> var, ms, mom",
     [](double var, double ms, double mom, double lr, double grad, const C& c) {
       return kRmsProp(var, ms, mom, lr, c[0], c[1], c[2], grad);
     },
     kTwoSlots},
    {"ApplyCenteredRMSProp(var, mg, ms, mom, lr, rho, momentum, epsilon, grad; use_locking=false) "
     "-> var",
     kCenteredRmsProp,
     {.updates = {0, 1, 2, 3}}},
    {"ApplyAdagrad(var, accum, lr, grad; update_slots=true, use_locking=false) -> var", kAdagrad,
     kOneSlot},
    {"ApplyAdagradD(var, accum, lr, grad; update_slots=true, use_locking=false) -> var, accum",
     kAdagrad, kOneSlot},
    {"ApplyAdadelta(var, accum, accum_update, lr, rho, epsilon, grad; use_locking=false) -> var",
     kAdadelta, kTwoSlots},
    {"ApplyFtrl(var, accum, linear, grad, lr, l1, l2, lr_power; use_locking=false) -> var", kFtrl,
     kTwoSlots},
    {"ApplyPowerSign(var, m, lr, logbase, sign_decay, beta, grad; use_locking=false) -> var",
     kPowerSign, kOneSlot},
    {"ApplyAddSign(var, m, lr, alpha, sign_decay, beta, grad; use_locking=false) -> var", kAddSign,
     kOneSlot},
};

}  // namespace

void RegisterOptimizerOps(OpRegistry& registry) {
  RegisterPointwise(registry, kOptimizers);
}

}  // namespace npumesh
