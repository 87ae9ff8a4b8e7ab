// LayerNormV4, RmsNorm, GemmaRmsNorm and AddRmsNorm, as loop programs.
//
// Statistics are computed in two passes on float32 rows with sums as in row_io.h; the result
// is rounded once. AddRmsNorm follows the A2/A3 devices, to which the simulated SoC belongs: the
// sum is rounded to the input's type before it is normalised, and x * rstd is rounded again before
// it is multiplied by gamma.
#include "graph/ops/reduce/norm.h"

#include <optional>
#include <utility>

#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/define_rows.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/norm_view.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// ---- the programs ----

// 1 / sqrt(mean(x^2) + epsilon).
LoopValue WriteRoot(LoopBuilder& loop, LoopValue x, double epsilon) {
  const LoopValue squares = loop.Emit(LoopOp::kRowSum, {loop.Emit(LoopOp::kSquare, {x})});
  return loop.Emit(LoopOp::kRootOfMeanOf, {squares},
                   {static_cast<double>(loop.columns()), epsilon, 0});
}

struct RmsValues {
  LoopValue y = -1, root = -1;
};

// The quotient is rounded to `rounded`.
RmsValues WriteRms(LoopBuilder& loop, LoopValue x, LoopValue gamma, double epsilon,
                   DataType rounded) {
  const LoopValue root = WriteRoot(loop, x, epsilon);
  const LoopValue quotient = loop.Round(loop.Emit(LoopOp::kMul, {x, root}), rounded);
  return {loop.Emit(LoopOp::kMul, {quotient, gamma}), root};
}

struct LayerValues {
  LoopValue y = -1, mean = -1, root = -1;
};

// nullopt: there is no such vector.
LayerValues WriteLayer(LoopBuilder& loop, LoopValue x, std::optional<LoopValue> gamma,
                       std::optional<LoopValue> beta, double epsilon) {
  const LoopValue mean = loop.Emit(LoopOp::kMeanOf, {loop.Emit(LoopOp::kRowSum, {x})},
                                   {static_cast<double>(loop.columns()), 0, 0});
  const LoopValue centred = loop.Emit(LoopOp::kSub, {x, mean});
  const LoopValue root = WriteRoot(loop, centred, epsilon);
  LoopValue y = loop.Emit(LoopOp::kMul, {centred, root});
  if (gamma) y = loop.Emit(LoopOp::kMul, {y, *gamma});
  if (beta) y = loop.Emit(LoopOp::kAdd, {y, *beta});
  return {y, mean, root};
}

// ---- the operators ----

constexpr std::string_view kOtherRows = "it is not normalised over rows of the last dimension";

// The dimensions that the vectors of a norm span, as one.
struct NormSpan {
  Shape rows;  // of x
  Shape vector;
};

NormSpan SpanOf(const Shape& x, const Shape& vector) {
  const int64_t columns = vector.elements();
  return {Spliced(x, x.rank() - vector.rank(), x.rank(), {columns}), Shape({columns})};
}

double EpsilonOf(const OpContext& op) {
  return static_cast<double>(op.attr_float("epsilon"));
}

void CheckVector(const OpContext& op, std::string_view port, const Shape& normalized,
                 Check& check) {
  if (!op.has(port)) return;
  check.Keep(ExpectType(op, port, kFloats));
  check.That(op.in(port).shape == normalized, "\"{}\" is {}, expected the normalized shape {}",
             port, op.in(port).shape, normalized);
}

SpacePlan PlanLayerNorm(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  check.Keep(ExpectType(op, "x", kFloats));
  const Shape normalized(check.Take(op.Ints("normalized_shape")));
  check.That(EndsWith(x.shape, normalized),
             "x is {}, which does not end with the normalized shape {}", x, normalized);
  if (!check.ok()) return {};
  CheckVector(op, "gamma", normalized, check);
  CheckVector(op, "beta", normalized, check);
  SpacePlan plan;
  plan.space = SpanOf(x.shape, normalized).rows;
  const int axis = x.shape.rank() - normalized.rank();
  const TensorType statistics = {DataType::kFloat, StatisticsShape(x.shape, axis)};
  plan.outputs = {x, statistics, statistics};
  return plan;
}

void LoopLayerNorm(const OpContext& op, LoopBuilder& loop) {
  const Result<std::vector<int64_t>> normalized = op.Ints("normalized_shape");
  if (!normalized.ok()) return;
  const NormSpan span = SpanOf(op.in("x").shape, Shape(*normalized));
  if (span.vector[0] != loop.columns()) {
    loop.Refuse(kOtherRows);
    return;
  }
  const auto vector = [&](std::string_view port) -> std::optional<LoopValue> {
    if (!op.has(port)) return std::nullopt;
    return loop.In(op.slot(port), span.vector);
  };
  const LoopValue x = loop.In(op.slot("x"), span.rows);
  const LayerValues norm = WriteLayer(loop, x, vector("gamma"), vector("beta"), EpsilonOf(op));
  loop.Give(norm.y);
  loop.Give(1, norm.mean);
  loop.Give(2, norm.root);
}

// Outputs of RmsNorm: y, rstd; of AddRmsNorm: y, rstd, x.
template <bool kAdds>
SpacePlan PlanRmsNorm(const OpContext& op, Check& check) {
  constexpr std::string_view kX = kAdds ? "x1" : "x";
  const TensorType &x = op.in(kX), &gamma = op.in("gamma");
  if (kAdds) check.SameTensor("x2", "x1");
  check.Keep(ExpectType(op, kX, kFloats));
  check.Keep(ExpectType(op, "gamma", kFloats));
  check.That(gamma.shape.rank() > 0 && EndsWith(x.shape, gamma.shape),
             "\"{}\" is {}, which does not end with the shape of \"gamma\", {}", kX, x,
             gamma.shape);
  if (!check.ok()) return {};
  SpacePlan plan;
  plan.space = SpanOf(x.shape, gamma.shape).rows;
  const int axis = x.shape.rank() - gamma.shape.rank();
  plan.outputs = {x, {DataType::kFloat, StatisticsShape(x.shape, axis)}};
  if (kAdds) plan.outputs.push_back(x);
  return plan;
}

template <bool kAdds, bool kAddsOne = false>
void LoopRmsNorm(const OpContext& op, LoopBuilder& loop) {
  const int slot = op.slot(kAdds ? "x1" : "x");
  const TensorType& type = op.in(slot);
  const NormSpan span = SpanOf(type.shape, op.in("gamma").shape);
  if (span.vector[0] != loop.columns()) {
    loop.Refuse(kOtherRows);
    return;
  }
  LoopValue x = loop.In(slot, span.rows);
  if (kAdds) {
    const LoopValue other = loop.In(op.slot("x2"), span.rows);
    x = loop.Round(loop.Emit(LoopOp::kAdd, {x, other}), type.dtype);
  }
  LoopValue gamma = loop.In(op.slot("gamma"), span.vector);
  if (kAddsOne) gamma = loop.Emit(LoopOp::kAdd, {loop.Constant(1), gamma});
  const DataType rounded = kAdds ? type.dtype : DataType::kFloat;
  const RmsValues norm = WriteRms(loop, x, gamma, EpsilonOf(op), rounded);
  loop.Give(norm.y);
  loop.Give(1, norm.root);
  if (kAdds) loop.Give(2, x);
}

// ---- as others write them ----

// `write` gives y from x and the vectors.
template <typename Write>
std::unique_ptr<Kernel> MakeNormKernel(const NormForm& form, Write write) {
  const Shape space({form.rows, form.columns});
  LoopBuilder loop(space, LoopTarget::kBlocks);
  const LoopValue x = loop.Tensor(0, form.x, space);
  std::vector<LoopValue> vectors;
  for (const DataType dtype : form.vectors) {
    const int slot = 1 + static_cast<int>(vectors.size());
    vectors.push_back(loop.Tensor(slot, dtype, Shape({form.columns})));
  }
  loop.Write(loop.Round(write(loop, x, vectors), form.y), form.y);
  return MakeRowMachine(loop.Finish(), std::nullopt, form.threads);
}

}  // namespace

std::unique_ptr<Kernel> MakeRmsNormKernel(const NormForm& form) {
  return MakeNormKernel(form, [&](LoopBuilder& loop, LoopValue x, const auto& vectors) {
    const DataType rounded = form.rounds ? form.y : DataType::kFloat;
    return WriteRms(loop, x, vectors[0], form.epsilon, rounded).y;
  });
}

std::unique_ptr<Kernel> MakeLayerNormKernel(const NormForm& form) {
  return MakeNormKernel(form, [&](LoopBuilder& loop, LoopValue x, const auto& vectors) {
    const auto vector = [&](size_t i) {
      return i < vectors.size() ? std::optional(vectors[i]) : std::nullopt;
    };
    return WriteLayer(loop, x, vector(0), vector(1), form.epsilon).y;
  });
}

void RegisterNormOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  const Axes rows = "x[.. g..!], gamma[g..] -> y[.. g..], rstd[.. 1..]";
  registry.Add(DefineRows<PlanLayerNorm, LoopLayerNorm>(
      "LayerNormV4(x, normalized_shape, gamma?, beta?; epsilon=1e-05) -> y, mean, rstd",
      {.value_inputs = {"normalized_shape"},
       .axes = "x[.. g..!], normalized_shape[#g], gamma[g..], beta[g..] -> y[.. g..], "
               "mean[.. 1..], rstd[.. 1..]"}));
  registry.Add(DefineRows<PlanRmsNorm<false>, LoopRmsNorm<false>>(
      "RmsNorm(x, gamma; epsilon=1e-06) -> y, rstd", {.axes = rows}));
  registry.Add(DefineRows<PlanRmsNorm<false>, LoopRmsNorm<false, true>>(
      "GemmaRmsNorm(x, gamma; epsilon=1e-06) -> y, rstd", {.axes = rows}));
  registry.Add(DefineRows<PlanRmsNorm<true>, LoopRmsNorm<true>>(
      "AddRmsNorm(x1, x2, gamma; epsilon=1e-06) -> y, rstd, x",
      {.axes = "x1[.. g..!], x2[.. g..], gamma[g..] -> y[.. g..], rstd[.. 1..], x[.. g..]"}));
}

}  // namespace npumesh
