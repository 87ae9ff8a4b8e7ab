// Activations of one operand, and operators on the two halves of x along a dimension: SwiGlu, GLU,
// GeGluV2, GeluMul and the gradients of GLU and SwiGlu. SwiGlu computes in float32 like the
// activations; the others on halves compute in double and round once.
#include <algorithm>
#include <array>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/elementwise/family.h"
#include "graph/ops/toolbox/copy/block_operand.h"
#include "graph/ops/toolbox/lanes/lane_table.h"
#include "graph/ops/toolbox/machine/elementwise.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/values/activations.h"
#include "graph/ops/toolbox/values/row_io.h"
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
// Gives the elements of output 0 and 1, or of the two halves of output 0. A function object without
// state, over doubles and the numbers of loop programs.
class HalvesFormula {
 public:
  template <typename Number>
  using Function = std::array<Number, 2> (*)(Number g, Number a, Number b);

  constexpr HalvesFormula() = default;  // none
  template <typename F, typename = std::enable_if_t<std::is_class_v<F>>>
  constexpr HalvesFormula(F) : compute(Of<F, double>), write(Of<F, LoopNumber>) {}  // NOLINT

  Function<double> compute = nullptr;
  Function<LoopNumber> write = nullptr;

 private:
  template <typename F, typename Number>
  static std::array<Number, 2> Of(Number g, Number a, Number b) {
    return F()(g, a, b);
  }
};

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

// x as [outer, 2, run]: `run` elements of one half, then those of the other.
struct HalvesPlan : Planned {
  int threads = 1;
  int axis = 0;
  int64_t outer = 1, run = 0;
  HalvesFormula formula;
};

// Splits input "x" along an axis. Every output is a half of x.
HalvesPlan PlanHalvesOf(const OpContext& op, int axis, TypeSet types, HalvesFormula formula,
                        Check& check) {
  const TensorType& x = op.in("x");
  check.Keep(ExpectType(op, "x", types));
  if (!check.ok()) return {};
  check.That(x.shape[axis] % 2 == 0,
             "dimension {} of x {} is odd; expected an even size to split into halves", axis, x);
  HalvesPlan plan;
  plan.threads = op.threads();
  plan.axis = axis;
  plan.outer = ElementsBetween(x.shape, 0, axis);
  plan.run = ElementsBetween(x.shape, axis, x.shape.rank()) / 2;
  plan.formula = formula;
  Shape half = x.shape;
  half[axis] /= 2;
  plan.outputs.assign(op.schema().outputs.size(), {x.dtype, half});
  return plan;
}

// The same along the attribute "dim".
HalvesPlan PlanHalves(const OpContext& op, TypeSet types, HalvesFormula formula, Check& check) {
  const int axis = check.Axis("dim", op.in("x").shape.rank());
  return PlanHalvesOf(op, axis, types, formula, check);
}

// ---- SwiGlu ----

HalvesPlan PlanSwiGlu(const OpContext& op, Check& check) {
  return PlanHalves(op, kFloats, {}, check);
}

// Of the runs [begin, end).
void SwiGluRuns(const HalvesPlan& plan, const KernelArgs& args, int64_t begin, int64_t end) {
  constexpr int64_t kStep = kBlockElements;
  alignas(64) float gates[kStep], values[kStep];
  const LaneFn formula = FindLanes(LoopOp::kSwiGlu, LoopType::kFloat);
  const DataType dtype = plan.outputs[0].dtype;
  for (int64_t outer = begin; outer < end; ++outer) {
    for (int64_t at = 0; at < plan.run; at += kStep) {
      const int64_t count = std::min(kStep, plan.run - at), first = 2 * outer * plan.run + at;
      const void* in[] = {LoadRow(dtype, args.in[0], first, count, gates),
                          LoadRow(dtype, args.in[0], first + plan.run, count, values)};
      formula(in, gates, static_cast<size_t>(count), {});
      StoreRow(dtype, gates, args.out[0], outer * plan.run + at, count);
    }
  }
}

// Threads that share the elements of a half.
int PartsOf(const HalvesPlan& plan) {
  return WorthThreads(2 * kElementWork * static_cast<double>(plan.outer * plan.run), plan.threads);
}

Status RunSwiGlu(const HalvesPlan& plan, const KernelArgs& args) {
  RunRanges(PartsOf(plan), plan.outer, 1,
            [&](int /*part*/, int64_t begin, int64_t end) { SwiGluRuns(plan, args, begin, end); });
  return Status();
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

HalvesPlan PlanGlu(const OpContext& op, Check& check) {
  return PlanHalves(op, kFloatsAndDouble, kGlu, check);
}

HalvesPlan PlanGeGlu(const OpContext& op, Check& check) {
  constexpr HalvesFormula kTanh[] = {kGeGlu<false, false>, kGeGlu<false, true>};
  constexpr HalvesFormula kErf[] = {kGeGlu<true, false>, kGeGlu<true, true>};
  const size_t left = op.attr_bool("activate_left") ? 1 : 0;
  const HalvesFormula formula = op.attr_int("approximate") == 0 ? kErf[left] : kTanh[left];
  return PlanHalves(op, kFloatsAndDouble, formula, check);
}

// Along the last dimension; gelu is that of the first half.
HalvesPlan PlanGeluMul(const OpContext& op, Check& check) {
  const auto formula = check.Meaning<HalvesFormula>(
      "approximate", {{"none", kGeGlu<true, true>}, {"tanh", kGeGlu<false, true>}});
  const int rank = op.in("x").shape.rank();
  check.That(rank > 0, "x is a scalar, expected rows");
  return PlanHalvesOf(op, rank - 1, kFloatsAndDouble, formula, check);
}

// The outputs of a forward pass.
template <auto PlanFn>
void LoopForward(const OpContext& op, LoopBuilder& loop) {
  Check check(op);
  const HalvesPlan plan = PlanFn(op, check);
  if (!check.ok()) return;
  const auto [a, b] = HalvesOf(op, plan.axis, loop);
  const auto wide = [&](LoopValue x) { return LoopNumber(loop, loop.As(LoopType::kDouble, x)); };
  const auto results = plan.formula.write(0, wide(a), wide(b));
  for (int port = 0; port < op.outputs(); ++port) {
    const LoopNumber& y = results[static_cast<size_t>(port)];
    loop.Give(port, loop.To(op.out(port).dtype, y.In(loop)));
  }
}

template <const auto& kFormula>
HalvesPlan PlanGradient(const OpContext& op, Check& check) {
  const TensorType &x = op.in("x"), &grad = op.in("y_grad");
  HalvesPlan plan = PlanHalves(op, kFloatsAndDouble, kFormula, check);
  if (!check.ok()) return plan;
  check.That(grad == plan.outputs[0], "\"y_grad\" is {}, expected a half of x {}", grad, x);
  plan.outputs = {x};
  return plan;
}

// Calls visit(element of the first half, element of a tensor of one half), on threads.
template <typename Visit>
void ForHalves(const HalvesPlan& plan, Visit visit) {
  const int64_t run = plan.run;
  RunRanges(PartsOf(plan), plan.outer * run, 1, [&](int, int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t outer = begin / run, last = std::min(end, (outer + 1) * run);
      for (; begin < last; ++begin) {
        visit(static_cast<size_t>(begin + outer * run), static_cast<size_t>(begin));
      }
    }
  });
}

Status RunForward(const HalvesPlan& plan, RealTensors& t) {
  const std::vector<double>& x = t.in[0];
  ForHalves(plan, [&](size_t a, size_t half) {
    const auto result = plan.formula.compute(0, x[a], x[a + static_cast<size_t>(plan.run)]);
    for (size_t port = 0; port < plan.outputs.size(); ++port) t.out[port][half] = result[port];
  });
  return Status();
}

// Inputs y_grad, x.
Status RunGradient(const HalvesPlan& plan, RealTensors& t) {
  const std::vector<double>&grad = t.in[0], &x = t.in[1];
  ForHalves(plan, [&](size_t a, size_t half) {
    const size_t b = a + static_cast<size_t>(plan.run);
    const auto result = plan.formula.compute(grad[half], x[a], x[b]);
    t.out[0][a] = result[0];
    t.out[0][b] = result[1];
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
  registry.Add(Define<PlanSwiGlu, RunSwiGlu>(
      "SwiGlu(x; dim=-1) -> y",
      {.loop = LoopSwiGlu, .axes = "x[.. 2a ..] -> y[.. a ..]; a = dim"}));
}

void RegisterHalvesOps(OpRegistry& registry) {
  registry.Add(DefineReal<PlanGlu, RunForward>(
      "GLU(x; dim=-1) -> y",
      {.loop = LoopForward<PlanGlu>, .axes = "x[.. 2a ..] -> y[.. a ..]; a = dim"}));
  registry.Add(DefineReal<PlanGeGlu, RunForward>(
      "GeGluV2(x; dim=-1, approximate=1, activate_left=false) -> y, gelu",
      {.loop = LoopForward<PlanGeGlu>}));
  registry.Add(DefineReal<PlanGeluMul, RunForward>("GeluMul(x; approximate=\"none\") -> y",
                                                   {.loop = LoopForward<PlanGeluMul>}));
  registry.Add(
      DefineReal<PlanGradient<kGluGrad>, RunGradient>("GLUGrad(y_grad, x; dim=-1) -> x_grad"));
  registry.Add(
      DefineReal<PlanGradient<kSwiGluGrad>, RunGradient>("SwiGluGrad(y_grad, x; dim=-1) -> y"));
}

}  // namespace npumesh
