// Operators on the two halves of x along a dimension: GLU, GeGluV2 and the gradients of GLU and
// SwiGlu. Computed in double and rounded once.
#include "graph/ops/elementwise/gated_activations.h"

#include <array>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/elementwise/family.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {

Halves HalvesOf(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  const int axis = check.Axis("dim", x.shape.rank());
  if (!check.ok()) return Halves();
  check.That(x.shape[axis] % 2 == 0,
             "dimension {} of x {} is odd; expected an even size to split into halves", axis, x);
  Halves halves{ElementsBetween(x.shape, 0, axis),
                ElementsBetween(x.shape, axis, x.shape.rank()) / 2, x.shape};
  halves.half[axis] /= 2;
  return halves;
}

namespace {

// `g` is an element of the incoming gradient (0 without one), `a` and `b` those of the halves.
// Gives the elements of output 0 and 1, or of the two halves of output 0.
using HalvesFormula = std::array<double, 2> (*)(double g, double a, double b);

template <double (*kGelu)(double), bool kLeft>
std::array<double, 2> GeGlu(double, double a, double b) {
  const double gelu = kGelu(kLeft ? a : b);
  return {gelu * (kLeft ? b : a), gelu};
}

std::array<double, 2> Glu(double, double a, double b) {
  return {a * Sigmoid(b), 0};
}

std::array<double, 2> GluGrad(double g, double a, double b) {
  const double s = Sigmoid(b);
  return {g * s, g * a * s * (1 - s)};
}

std::array<double, 2> SwiGluGrad(double g, double a, double b) {
  const double s = Sigmoid(a);
  return {g * b * s * (1 + a * (1 - s)), g * a * s};
}

struct HalvesPlan : Planned {
  Halves halves;
  HalvesFormula formula = nullptr;
};

Result<HalvesPlan> PlanForward(const OpContext& op, HalvesFormula formula) {
  Check check(op);
  const TensorType& x = op.in("x");
  check.Keep(ExpectReal(op, "x"));
  HalvesPlan plan;
  plan.halves = HalvesOf(op, check);
  plan.formula = formula;
  plan.outputs.assign(op.schema().outputs.size(), {x.dtype, plan.halves.half});
  return check.Done(std::move(plan));
}

Result<HalvesPlan> PlanGlu(const OpContext& op) {
  return PlanForward(op, Glu);
}

Result<HalvesPlan> PlanGeGlu(const OpContext& op) {
  const bool left = op.attr_bool("activate_left");
  if (op.attr_int("approximate") == 0) {
    return PlanForward(op, left ? GeGlu<GeluErf, true> : GeGlu<GeluErf, false>);
  }
  return PlanForward(op, left ? GeGlu<GeluTanh, true> : GeGlu<GeluTanh, false>);
}

template <HalvesFormula kFormula>
Result<HalvesPlan> PlanGradient(const OpContext& op) {
  Check check(op);
  const TensorType &x = op.in("x"), &grad = op.in("y_grad");
  check.Keep(ExpectReal(op, "x"));
  HalvesPlan plan;
  plan.halves = HalvesOf(op, check);
  plan.formula = kFormula;
  check.That(grad == TensorType{x.dtype, plan.halves.half},
             "\"y_grad\" is {}, expected a half of x {}", grad, x);
  plan.outputs = {x};
  return check.Done(std::move(plan));
}

// Calls visit(element of the first half, element of a tensor of one half).
template <typename Visit>
void ForHalves(const Halves& halves, Visit visit) {
  const auto run = static_cast<size_t>(halves.run);
  for (size_t outer = 0; outer < static_cast<size_t>(halves.outer); ++outer) {
    for (size_t i = 0; i < run; ++i) visit(2 * outer * run + i, outer * run + i);
  }
}

Status RunForward(const HalvesPlan& plan, RealTensors& t) {
  const std::vector<double>& x = t.in[0];
  const auto run = static_cast<size_t>(plan.halves.run);
  const bool two = plan.outputs.size() == 2;
  ForHalves(plan.halves, [&](size_t a, size_t half) {
    const std::array<double, 2> result = plan.formula(0, x[a], x[a + run]);
    t.out[0][half] = result[0];
    if (two) t.out[1][half] = result[1];
  });
  return Status();
}

// Inputs y_grad, x.
Status RunGradient(const HalvesPlan& plan, RealTensors& t) {
  const std::vector<double>&grad = t.in[0], &x = t.in[1];
  const auto run = static_cast<size_t>(plan.halves.run);
  ForHalves(plan.halves, [&](size_t a, size_t half) {
    const std::array<double, 2> result = plan.formula(grad[half], x[a], x[a + run]);
    t.out[0][a] = result[0];
    t.out[0][a + run] = result[1];
  });
  return Status();
}

}  // namespace

void RegisterHalvesOps(OpRegistry& registry) {
  registry.Add(DefineReal<PlanGlu, RunForward>("GLU(x; dim=-1) -> y"));
  registry.Add(DefineReal<PlanGeGlu, RunForward>(
      "GeGluV2(x; dim=-1, approximate=1, activate_left=false) -> y, gelu"));
  registry.Add(
      DefineReal<PlanGradient<GluGrad>, RunGradient>("GLUGrad(y_grad, x; dim=-1) -> x_grad"));
  registry.Add(
      DefineReal<PlanGradient<SwiGluGrad>, RunGradient>("SwiGluGrad(y_grad, x; dim=-1) -> y"));
}

}  // namespace npumesh
