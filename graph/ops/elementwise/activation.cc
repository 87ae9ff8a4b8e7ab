// Activations of one operand, and operators on the two halves of x along a dimension: SwiGlu, GLU,
// GeGluV2, GeluMul and the gradients of GLU and SwiGlu. SwiGlu computes in float32 like the
// activations; the others on halves compute in double and round once. What runs forward is a loop
// program.
#include <array>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/machine/elementwise.h"
#include "graph/ops/toolbox/rows/define_rows.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/values/activations.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

Result<LoopOp> ChooseGelu(const OpContext& context) {
  const std::string approximate = context.attr_string("approximate");
  if (approximate == "none") return LoopOp::kGeluErf;
  if (approximate == "tanh") return LoopOp::kGeluTanh;
  return Error(Code::kInvalidArgument,
               "{}: attribute \"approximate\" is \"{}\"; expected \"none\" or \"tanh\"",
               context.Who(), approximate);
}

// `g` is an element of the incoming gradient (0 without one), `a` and `b` those of the halves.
// Gives the elements of output 0 and 1, or of the two halves of output 0. Over doubles and the
// numbers of loop programs.
template <typename Number>
using HalvesFormula = std::array<Number, 2> (*)(const Number& g, const Number& a, const Number& b);

// Gelu of one half times the other, and the gelu.
template <bool kErf, bool kLeft>
constexpr auto kGeGlu = []<Real D>(const D&, const D& a, const D& b) {
  const D gelu = kErf ? GeluErf(kLeft ? a : b) : GeluTanh(kLeft ? a : b);
  return std::array<D, 2>{gelu * (kLeft ? b : a), gelu};
};

constexpr auto kGlu = []<Real D>(const D&, const D& a, const D& b) {
  return std::array<D, 2>{a * Sigmoid(b), 0.0};
};

constexpr auto kGluGrad = []<Real D>(const D& g, const D& a, const D& b) {
  const D s = Sigmoid(b);
  return std::array<D, 2>{g * s, g * a * s * (1 - s)};
};

constexpr auto kSwiGluGrad = []<Real D>(const D& g, const D& a, const D& b) {
  const D s = Sigmoid(a);
  return std::array<D, 2>{g * b * s * (1 + a * (1 - s)), g * a * s};
};

// Rows of a half of x.
struct HalvesPlan : SpacePlan {
  int axis = 0;
};

// Splits input "x" along an axis. Every output is a half of x.
template <class Plan = HalvesPlan>
Plan PlanHalvesOf(const OpContext& op, int axis, TypeSet types, Check& check) {
  const TensorType& x = op.in("x");
  check.Keep(ExpectType(op, "x", types));
  if (!check.ok()) return {};
  check.That(x.shape[axis] % 2 == 0,
             "dimension {} of x {} is odd; expected an even size to split into halves", axis, x);
  Plan plan;
  plan.axis = axis;
  plan.space = x.shape;
  plan.space[axis] /= 2;
  plan.outputs.assign(op.schema().outputs.size(), {x.dtype, plan.space});
  return plan;
}

// The same along the attribute "dim".
template <class Plan = HalvesPlan>
Plan PlanHalves(const OpContext& op, TypeSet types, Check& check) {
  return PlanHalvesOf<Plan>(op, check.Axis("dim", op.in("x").shape.rank()), types, check);
}

// ---- SwiGlu ----

HalvesPlan PlanSwiGlu(const OpContext& op, Check& check) {
  return PlanHalves(op, kFloats, check);
}

// The halves, as elements of rows of one.
std::array<LoopValue, 2> HalvesOf(const OpContext& op, int axis, LoopBuilder& loop) {
  const int slot = op.slot("x");
  return {loop.PartOf(slot, axis, 0), loop.PartOf(slot, axis, op.in(slot).shape[axis] / 2)};
}

void LoopSwiGlu(const OpContext& op, LoopBuilder& loop) {
  Check check(op);
  const HalvesPlan plan = PlanSwiGlu(op, check);
  if (!check.ok()) return;
  const auto [gate, value] = HalvesOf(op, plan.axis, loop);
  loop.Give(loop.Emit(LoopOp::kSwiGlu, {gate, value}));
}

// ---- in double ----

struct ForwardPlan : HalvesPlan {
  HalvesFormula<LoopNumber> formula = nullptr;
};

ForwardPlan PlanGlu(const OpContext& op, Check& check) {
  auto plan = PlanHalves<ForwardPlan>(op, kFloatsAndDouble, check);
  plan.formula = kGlu;
  return plan;
}

ForwardPlan PlanGeGlu(const OpContext& op, Check& check) {
  auto plan = PlanHalves<ForwardPlan>(op, kFloatsAndDouble, check);
  constexpr HalvesFormula<LoopNumber> kTanh[] = {kGeGlu<false, false>, kGeGlu<false, true>};
  constexpr HalvesFormula<LoopNumber> kErf[] = {kGeGlu<true, false>, kGeGlu<true, true>};
  const size_t left = op.attr_bool("activate_left") ? 1 : 0;
  plan.formula = op.attr_int("approximate") == 0 ? kErf[left] : kTanh[left];
  return plan;
}

// Along the last dimension; gelu is that of the first half.
ForwardPlan PlanGeluMul(const OpContext& op, Check& check) {
  const auto formula = check.Meaning<HalvesFormula<LoopNumber>>(
      "approximate", {{"none", kGeGlu<true, true>}, {"tanh", kGeGlu<false, true>}});
  const int rank = op.in("x").shape.rank();
  check.That(rank > 0, "x is a scalar, expected rows");
  auto plan = PlanHalvesOf<ForwardPlan>(op, rank - 1, kFloatsAndDouble, check);
  plan.formula = formula;
  return plan;
}

template <auto PlanFn>
void LoopForward(const OpContext& op, LoopBuilder& loop) {
  Check check(op);
  const ForwardPlan plan = PlanFn(op, check);
  if (!check.ok()) return;
  const auto [a, b] = HalvesOf(op, plan.axis, loop);
  const auto wide = [&](LoopValue x) { return LoopNumber(loop, loop.As(LoopType::kDouble, x)); };
  const auto results = plan.formula(0, wide(a), wide(b));
  for (int port = 0; port < op.outputs(); ++port) {
    const LoopNumber& y = results[static_cast<size_t>(port)];
    loop.Give(port, loop.To(op.out(port).dtype, y.In(loop)));
  }
}

template <auto PlanFn>
Operator DefineForward(std::string_view signature, Operator traits = {}) {
  return DefineRows<PlanFn, LoopForward<PlanFn>>(signature, std::move(traits));
}

// ---- gradients ----

// x as [outer, 2, run]: `run` elements of one half, then those of the other.
struct GradientPlan : HalvesPlan {
  int threads = 1;
  int64_t outer = 1, run = 0;
};

GradientPlan PlanGradient(const OpContext& op, Check& check) {
  const TensorType &x = op.in("x"), &grad = op.in("y_grad");
  auto plan = PlanHalves<GradientPlan>(op, kFloatsAndDouble, check);
  if (!check.ok()) return plan;
  check.That(grad == plan.outputs[0], "\"y_grad\" is {}, expected a half of x {}", grad, x);
  plan.outputs = {x};
  plan.threads = op.threads();
  plan.outer = ElementsBetween(x.shape, 0, plan.axis);
  plan.run = ElementsBetween(x.shape, plan.axis, x.shape.rank()) / 2;
  return plan;
}

// Inputs y_grad, x. On threads that share the elements of a half.
template <const auto& kFormula>
Status RunGradient(const GradientPlan& plan, RealTensors& t) {
  const std::vector<double>&grad = t.in[0], &x = t.in[1];
  const int64_t run = plan.run, elements = plan.outer * run;
  const int parts = WorthThreads(2 * kElementWork * static_cast<double>(elements), plan.threads);
  RunRanges(parts, elements, 1, [&](int /*part*/, int64_t begin, int64_t end) {
    for (int64_t half = begin; half < end; ++half) {
      const auto a = static_cast<size_t>(half / run * 2 * run + half % run);
      const size_t b = a + static_cast<size_t>(run);
      const auto result = kFormula(grad[static_cast<size_t>(half)], x[a], x[b]);
      t.out[0][a] = result[0];
      t.out[0][b] = result[1];
    }
  });
  return Status();
}

}  // namespace

void RegisterActivationOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Relu(x) -> y", LoopOp::kRelu},
      {"Relu6(x) -> y", LoopOp::kRelu6},
      {"LeakyRelu(x; negative_slope=0.0) -> y", LoopOp::kLeakyRelu},
      {"HardSigmoid(input_x; alpha=0.16666666, beta=0.5) -> output_y", LoopOp::kHardSigmoid,
       ResultRule::kQuotient},
      {"HardSwish(x) -> y", LoopOp::kHardSwish},
      {"Sigmoid(x) -> y", LoopOp::kSigmoid},
      {"Tanh(x) -> y", LoopOp::kTanh},
      {"Gelu(x) -> y", LoopOp::kGeluTanh},
      {"GeluV2(x; approximate=\"none\") -> y", LoopOp::kGeluErf, ResultRule::kSame, ChooseGelu},
      {"FastGelu(x) -> y", LoopOp::kFastGelu},
      {"Swish(x; scale=1.0) -> y", LoopOp::kSwish},
  };
  RegisterElementwise(registry, specs);
  registry.Add(DefineRows<PlanSwiGlu, LoopSwiGlu>("SwiGlu(x; dim=-1) -> y",
                                                  {.axes = "x[.. 2a ..] -> y[.. a ..]; a = dim"}));
}

void RegisterHalvesOps(OpRegistry& registry) {
  registry.Add(DefineForward<PlanGlu>("GLU(x; dim=-1) -> y",
                                      {.axes = "x[.. 2a ..] -> y[.. a ..]; a = dim"}));
  registry.Add(DefineForward<PlanGeGlu>(
      "GeGluV2(x; dim=-1, approximate=1, activate_left=false) -> y, gelu"));
  registry.Add(DefineForward<PlanGeluMul>("GeluMul(x; approximate=\"none\") -> y"));
  registry.Add(
      DefineReal<PlanGradient, RunGradient<kGluGrad>>("GLUGrad(y_grad, x; dim=-1) -> x_grad"));
  registry.Add(
      DefineReal<PlanGradient, RunGradient<kSwiGluGrad>>("SwiGluGrad(y_grad, x; dim=-1) -> y"));
}

}  // namespace npumesh
