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

// x as [outer, 2, run]: `run` elements of one half, then those of the other.
struct HalvesPlan : Planned {
  int threads = 1;
  int64_t outer = 1, run = 0;
  HalvesFormula formula = nullptr;
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
  return PlanHalves(op, kFloats, nullptr, check);
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

void LoopSwiGlu(const OpContext& op, LoopBuilder& loop) {
  const Shape& x = op.in("x").shape;
  if (x.rank() == 0 || x.dims().back() != 2 * loop.columns() ||
      x.rank() != op.out(0).shape.rank() || op.out(0).shape.dims().back() != loop.columns()) {
    return;
  }
  const LoopValue gate = loop.ColumnsOf(op.slot("x"), 0, x.dims().back());
  const LoopValue value = loop.ColumnsOf(op.slot("x"), loop.columns(), x.dims().back());
  loop.Give(loop.Emit(LoopOp::kSwiGlu, {gate, value}));
}

// ---- in double ----

HalvesPlan PlanGlu(const OpContext& op, Check& check) {
  return PlanHalves(op, kFloatsAndDouble, Glu, check);
}

HalvesPlan PlanGeGlu(const OpContext& op, Check& check) {
  constexpr HalvesFormula kTanh[] = {GeGlu<GeluTanh, false>, GeGlu<GeluTanh, true>};
  constexpr HalvesFormula kErf[] = {GeGlu<GeluErf, false>, GeGlu<GeluErf, true>};
  const size_t left = op.attr_bool("activate_left") ? 1 : 0;
  const HalvesFormula formula = op.attr_int("approximate") == 0 ? kErf[left] : kTanh[left];
  return PlanHalves(op, kFloatsAndDouble, formula, check);
}

// Along the last dimension; gelu is that of the first half.
HalvesPlan PlanGeluMul(const OpContext& op, Check& check) {
  const auto formula = check.Meaning<HalvesFormula>(
      "approximate", {{"none", GeGlu<GeluErf, true>}, {"tanh", GeGlu<GeluTanh, true>}});
  const int rank = op.in("x").shape.rank();
  check.That(rank > 0, "x is a scalar, expected rows");
  return PlanHalvesOf(op, rank - 1, kFloatsAndDouble, formula, check);
}

template <HalvesFormula kFormula>
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
    const auto result = plan.formula(0, x[a], x[a + static_cast<size_t>(plan.run)]);
    for (size_t port = 0; port < plan.outputs.size(); ++port) t.out[port][half] = result[port];
  });
  return Status();
}

// Inputs y_grad, x.
Status RunGradient(const HalvesPlan& plan, RealTensors& t) {
  const std::vector<double>&grad = t.in[0], &x = t.in[1];
  ForHalves(plan, [&](size_t a, size_t half) {
    const size_t b = a + static_cast<size_t>(plan.run);
    const auto result = plan.formula(grad[half], x[a], x[b]);
    t.out[0][a] = result[0];
    t.out[0][b] = result[1];
  });
  return Status();
}

}  // namespace

void RegisterActivationOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Relu(x) -> y", LoopOp::kRelu},
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
      {.loop = LoopSwiGlu, .split = SplitTrait{.form = SplitForm::kHalves, .axes = "dim"}}));
}

void RegisterHalvesOps(OpRegistry& registry) {
  registry.Add(DefineReal<PlanGlu, RunForward>("GLU(x; dim=-1) -> y"));
  registry.Add(DefineReal<PlanGeGlu, RunForward>(
      "GeGluV2(x; dim=-1, approximate=1, activate_left=false) -> y, gelu"));
  registry.Add(DefineReal<PlanGeluMul, RunForward>("GeluMul(x; approximate=\"none\") -> y"));
  registry.Add(
      DefineReal<PlanGradient<GluGrad>, RunGradient>("GLUGrad(y_grad, x; dim=-1) -> x_grad"));
  registry.Add(
      DefineReal<PlanGradient<SwiGluGrad>, RunGradient>("SwiGluGrad(y_grad, x; dim=-1) -> y"));
}

}  // namespace npumesh
