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

const AttrSpec kLocking = {"use_locking", AttrValue::Bool(false)};
const AttrSpec kNesterov = {"use_nesterov", AttrValue::Bool(false)};
const AttrSpec kUpdateSlots = {"update_slots", AttrValue::Bool(true)};
const std::vector<PortSpec> kVar = {{"var"}};

// var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
void Adam(const double* in, const C& c, double* out) {
  const double beta1 = in[6], beta2 = in[7], grad = in[9];
  const double rate = in[5] * std::sqrt(1 - in[4]) / (1 - in[3]);
  const double m = beta1 * in[1] + (1 - beta1) * grad;
  const double v = beta2 * in[2] + (1 - beta2) * grad * grad;
  const double direction = c.attr[1] != 0 ? beta1 * m + (1 - beta1) * grad : m;
  out[0] = in[0] - rate * direction / (std::sqrt(v) + in[8]);
  out[1] = m;
  out[2] = v;
}

// var, m, v, beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, grad, max_grad_norm
//
// The powers are those of the step before, hence the factors on them.
void AdamW(const double* in, const C& c, double* out) {
  const bool amsgrad = c.attr[0] != 0;
  const double grad = c.attr[1] != 0 ? -in[10] : in[10];
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
  const double direction = c.attr[0] != 0 ? in[3] + in[4] * out[1] : out[1];
  out[0] = in[0] - in[2] * direction;
}

// var, accum, lr, grad, momentum; here the slot holds the step itself.
void KerasMomentum(const double* in, const C& c, double* out) {
  out[1] = in[4] * in[1] - in[2] * in[3];
  out[0] = in[0] + (c.attr[1] != 0 ? in[4] * out[1] - in[2] * in[3] : out[1]);
}

// parameters, gradient, learning_rate, accum, momentum, stat; stat is 1 at the first step, which is
// not damped. Without momentum the slots stay as they are.
void Sgd(const double* in, const C& c, double* out) {
  const double dampening = c.attr[0], weight_decay = c.attr[1], momentum = in[4];
  const double grad = in[1] + weight_decay * in[0];
  const double accum = momentum * in[3] + grad - (1 - in[5]) * dampening * grad;
  const bool slots = momentum != 0;
  const double direction = !slots ? grad : c.attr[2] != 0 ? grad + momentum * accum : accum;
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
  out[1] = c.attr[0] != 0 ? in[1] + in[3] * in[3] : in[1];
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

// var, alpha, l1, l2, delta
void ProximalGradientDescent(const double* in, const C&, double* out) {
  const double step = in[0] - in[1] * in[4];
  const double rest = std::fmax(std::fabs(step) - in[1] * in[2], 0);
  out[0] = SignOf(step) * rest / (1 + in[1] * in[3]);
}

const std::vector<PortSpec> kAdamInputs = {{"var"},         {"m"},   {"v"},     {"beta1_power"},
                                           {"beta2_power"}, {"lr"},  {"beta1"}, {"beta2"},
                                           {"epsilon"},     {"grad"}};
const std::vector<PortSpec> kMomentumInputs = {{"var"}, {"accum"}, {"lr"}, {"grad"}, {"momentum"}};
const std::vector<PortSpec> kAdagradInputs = {{"var"}, {"accum"}, {"lr"}, {"grad"}};

const PointwiseSpec kRows[] = {
    {.type = "ApplyAdam",
     .inputs = kAdamInputs,
     .real = Adam,
     .attrs = {kLocking, kNesterov},
     .outputs = kVar,
     .updates = {0, 1, 2}},
    {.type = "ApplyAdamD",
     .inputs = kAdamInputs,
     .real = Adam,
     .attrs = {kLocking, kNesterov},
     .outputs = {{"var"}, {"m"}, {"v"}},
     .updates = {0, 1, 2}},
    {.type = "ApplyAdamW",
     .inputs = {{"var"},
                {"m"},
                {"v"},
                {"beta1_power"},
                {"beta2_power"},
                {"lr"},
                {"weight_decay"},
                {"beta1"},
                {"beta2"},
                {"epsilon"},
                {"grad"},
                {"max_grad_norm", PortKind::kOptional}},
     .real = AdamW,
     .attrs = {{"amsgrad", AttrValue::Bool(false)}, {"maximize", AttrValue::Bool(false)}},
     .outputs = {{"var"}, {"m"}, {"v"}},
     .updates = {0, 1, 2, 11}},
    {.type = "ApplyAdaMax",
     .inputs = {{"var"},
                {"m"},
                {"v"},
                {"beta1_power"},
                {"lr"},
                {"beta1"},
                {"beta2"},
                {"epsilon"},
                {"grad"}},
     .real = AdaMax,
     .attrs = {kLocking},
     .outputs = kVar,
     .updates = {0, 1, 2}},
    {.type = "ApplyMomentum",
     .inputs = kMomentumInputs,
     .real = Momentum,
     .attrs = {kNesterov, kLocking},
     .outputs = kVar,
     .updates = {0, 1}},
    {.type = "ApplyMomentumD",
     .inputs = kMomentumInputs,
     .real = Momentum,
     .attrs = {kNesterov, kLocking},
     .outputs = {{"var"}, {"accum"}},
     .updates = {0, 1}},
    {.type = "ApplyKerasMomentum",
     .inputs = kMomentumInputs,
     .real = KerasMomentum,
     .attrs = {kLocking, kNesterov},
     .outputs = kVar,
     .updates = {0, 1}},
    {.type = "SGD",
     .inputs = {{"parameters"}, {"gradient"}, {"learning_rate"}, {"accum"}, {"momentum"}, {"stat"}},
     .real = Sgd,
     .attrs = {{"dampening", AttrValue::Float(0.0f)},
               {"weight_decay", AttrValue::Float(0.0f)},
               {"nesterov", AttrValue::Bool(false)}},
     .outputs = {{"parameters"}},
     .updates = {0, 3, 5}},
    {.type = "ApplyGradientDescent",
     .inputs = {{"var"}, {"alpha"}, {"delta"}},
     .real = [](const double* in, const C&, double* out) { out[0] = in[0] - in[1] * in[2]; },
     .attrs = {kLocking},
     .outputs = kVar,
     .updates = {0}},
    {.type = "ApplyProximalGradientDescent",
     .inputs = {{"var"}, {"alpha"}, {"l1"}, {"l2"}, {"delta"}},
     .real = ProximalGradientDescent,
     .attrs = {kLocking},
     .outputs = kVar,
     .updates = {0}},
    {.type = "ApplyRMSProp",
     .inputs = {{"var"}, {"ms"}, {"mom"}, {"lr"}, {"rho"}, {"momentum"}, {"epsilon"}, {"grad"}},
     .real = [](const double* in, const C&,
                double* out) { RmsProp(in, in[4], in[5], in[6], in[7], out); },
     .attrs = {kLocking},
     .outputs = kVar,
     .updates = {0, 1, 2}},
    {.type = "ApplyRMSPropD",
     .inputs = {{"var"}, {"ms"}, {"mom"}, {"lr"}, {"grad"}},
     .real = [](const double* in, const C& c,
                double* out) { RmsProp(in, c.attr[0], c.attr[1], c.attr[2], in[4], out); },
     .attrs = {{"rho", Required::kFloat},
               {"momentum", Required::kFloat},
               {"epsilon", Required::kFloat},
               kLocking},
     .outputs = {{"var"}, {"ms"}, {"mom"}},
     .updates = {0, 1, 2}},
    {.type = "ApplyCenteredRMSProp",
     .inputs =
         {{"var"}, {"mg"}, {"ms"}, {"mom"}, {"lr"}, {"rho"}, {"momentum"}, {"epsilon"}, {"grad"}},
     .real = CenteredRmsProp,
     .attrs = {kLocking},
     .outputs = kVar,
     .updates = {0, 1, 2, 3}},
    {.type = "ApplyAdagrad",
     .inputs = kAdagradInputs,
     .real = Adagrad,
     .attrs = {kUpdateSlots, kLocking},
     .outputs = kVar,
     .updates = {0, 1}},
    {.type = "ApplyAdagradD",
     .inputs = kAdagradInputs,
     .real = Adagrad,
     .attrs = {kUpdateSlots, kLocking},
     .outputs = {{"var"}, {"accum"}},
     .updates = {0, 1}},
    {.type = "ApplyAdadelta",
     .inputs = {{"var"}, {"accum"}, {"accum_update"}, {"lr"}, {"rho"}, {"epsilon"}, {"grad"}},
     .real = Adadelta,
     .attrs = {kLocking},
     .outputs = kVar,
     .updates = {0, 1, 2}},
    {.type = "ApplyFtrl",
     .inputs = {{"var"}, {"accum"}, {"linear"}, {"grad"}, {"lr"}, {"l1"}, {"l2"}, {"lr_power"}},
     .real = Ftrl,
     .attrs = {kLocking},
     .outputs = kVar,
     .updates = {0, 1, 2}},
    {.type = "ApplyPowerSign",
     .inputs = {{"var"}, {"m"}, {"lr"}, {"logbase"}, {"sign_decay"}, {"beta"}, {"grad"}},
     .real = PowerSign,
     .attrs = {kLocking},
     .outputs = kVar,
     .updates = {0, 1}},
    {.type = "ApplyAddSign",
     .inputs = {{"var"}, {"m"}, {"lr"}, {"alpha"}, {"sign_decay"}, {"beta"}, {"grad"}},
     .real = AddSign,
     .attrs = {kLocking},
     .outputs = kVar,
     .updates = {0, 1}},
};

}  // namespace

void RegisterOptimizerOps(OpRegistry& registry) {
  for (const PointwiseSpec& spec : kRows) RegisterPointwise(registry, spec);
}

}  // namespace npumesh
