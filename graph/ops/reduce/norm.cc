// LayerNormV4, RmsNorm, GemmaRmsNorm and AddRmsNorm.
//
// Statistics are computed in two passes on float32 rows with sums as in row_io.h; the result
// is rounded once. AddRmsNorm follows the A2/A3 devices, to which the simulated SoC belongs: the
// sum is rounded to the input's type before it is normalised, and x * rstd is rounded again before
// it is multiplied by gamma.
#include "graph/ops/reduce/norm.h"

#include <algorithm>
#include <cmath>

#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/reduce/family.h"
#include "graph/ops/toolbox/rows/norm_view.h"
#include "graph/ops/toolbox/values/rms_row.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/row_math.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// ---- LayerNormV4 ----

// The vector as floats; null: no vector.
const float* LoadColumns(const ColumnInput& input, const KernelArgs& args, int64_t columns) {
  if (!input.slot) return nullptr;
  return LoadRow(input.dtype, args.in[*input.slot], 0, columns, input.row(args));
}

void TakeRows(LayerNormPlan& plan) {
  for (ColumnInput* vector : {&plan.gamma, &plan.beta}) {
    if (vector->slot) vector->row = plan.scratch.Floats(plan.columns);
  }
  plan.parts.count = WorthThreadsForRows(plan.rows, plan.rows * plan.columns, plan.parts.threads);
  plan.scratch.Take(plan.parts.count * plan.columns, {&plan.x_row, &plan.y_row});
}

ColumnInput ColumnsOf(const OpContext& op, std::string_view port, const Shape& normalized,
                      Check& check) {
  if (!op.has(port)) return {};
  const TensorType& type = op.in(port);
  check.Keep(ExpectType(op, port, kFloats));
  check.That(type.shape == normalized, "\"{}\" is {}, expected the normalized shape {}", port,
             type.shape, normalized);
  return {op.slot(port), type.dtype, {}};
}

LayerNormPlan PlanLayerNorm(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  check.Keep(ExpectType(op, "x", kFloats));
  const Shape normalized(check.Take(op.Ints("normalized_shape")));
  check.That(EndsWith(x.shape, normalized),
             "x is {}, which does not end with the normalized shape {}", x, normalized);
  if (!check.ok()) return {};
  const int axis = x.shape.rank() - normalized.rank();
  LayerNormPlan plan;
  plan.rows = ElementsBetween(x.shape, 0, axis);
  plan.columns = normalized.elements();
  plan.parts.threads = op.threads();
  plan.x_dtype = plan.y_dtype = x.dtype;
  plan.gamma = ColumnsOf(op, "gamma", normalized, check);
  plan.beta = ColumnsOf(op, "beta", normalized, check);
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  TakeRows(plan);
  const TensorType statistics = {DataType::kFloat, StatisticsShape(x.shape, axis)};
  plan.outputs = {x, statistics, statistics};
  return plan;
}

struct Moments {
  float mean = 0;
  float rstd = 0;
};

// y = the normalised row x, before gamma and beta.
Moments CentreAndScale(const float* x, int64_t count, double epsilon, float* y) {
  const auto elements = static_cast<double>(count);
  Moments moments;
  moments.mean = static_cast<float>(SumOfRow(x, count) / elements);
  ShiftRow(x, -moments.mean, count, y);
  moments.rstd = static_cast<float>(1.0 / std::sqrt(SumOfSquares(y, count) / elements + epsilon));
  ScaleRow(y, moments.rstd, count, y);
  return moments;
}

// Row `r` on a thread; the vectors may be null.
void RunLayerNormRow(const LayerNormPlan& plan, const KernelArgs& args, int part, int64_t r,
                     const float* gamma, const float* beta) {
  const int64_t n = plan.columns;
  float *room = plan.x_row(args) + part * n, *y = plan.y_row(args) + part * n;
  const float* x = LoadRow(plan.x_dtype, args.in[0], r * n, n, room);
  const Moments moments = CentreAndScale(x, n, plan.epsilon, y);
  if (gamma != nullptr) MultiplyRow(y, gamma, n, y);
  if (beta != nullptr) AddRow(y, beta, n, y);
  StoreRow(plan.y_dtype, y, args.out[0], r * n, n);
  if (!plan.gives_statistics) return;
  static_cast<float*>(args.out[1])[r] = moments.mean;
  static_cast<float*>(args.out[2])[r] = moments.rstd;
}

Status RunLayerNorm(const LayerNormPlan& plan, const KernelArgs& args) {
  const float* gamma = LoadColumns(plan.gamma, args, plan.columns);
  const float* beta = LoadColumns(plan.beta, args, plan.columns);
  RunRanges(plan.parts.count, plan.rows, 1, [&](int part, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) RunLayerNormRow(plan, args, part, r, gamma, beta);
  });
  return Status();
}

// ---- RmsNorm, GemmaRmsNorm, AddRmsNorm ----

void TakeRows(RmsNormPlan& plan) {
  plan.parts.count = WorthThreadsForRows(plan.rows, plan.rows * plan.columns, plan.parts.threads);
  plan.gamma_row = plan.scratch.Floats(plan.columns);
  plan.scratch.Take(plan.parts.count * plan.columns, {&plan.x_row, &plan.y_row});
  if (plan.x2_slot) plan.x2_row = plan.scratch.Floats(plan.parts.count * plan.columns);
}

// Outputs of RmsNorm: y, rstd; of AddRmsNorm: y, rstd, x.
template <bool kAdds>
RmsNormPlan PlanRmsNorm(const OpContext& op, Check& check) {
  constexpr std::string_view kX = kAdds ? "x1" : "x";
  const TensorType &x = op.in(kX), &gamma = op.in("gamma");
  if (kAdds) check.SameTensor("x2", "x1");
  check.Keep(ExpectType(op, kX, kFloats));
  check.Keep(ExpectType(op, "gamma", kFloats));
  check.That(gamma.shape.rank() > 0 && EndsWith(x.shape, gamma.shape),
             "\"{}\" is {}, which does not end with the shape of \"gamma\", {}", kX, x,
             gamma.shape);
  if (!check.ok()) return {};
  const int axis = x.shape.rank() - gamma.shape.rank();
  RmsNormPlan plan;
  plan.rows = ElementsBetween(x.shape, 0, axis);
  plan.columns = gamma.shape.elements();
  if (kAdds) plan.x2_slot = op.slot("x2");
  plan.parts.threads = op.threads();
  plan.gamma_slot = op.slot("gamma");
  plan.x_dtype = plan.y_dtype = x.dtype;
  plan.gamma_dtype = gamma.dtype;
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.rounds = kAdds;
  TakeRows(plan);
  plan.outputs = {x, {DataType::kFloat, StatisticsShape(x.shape, axis)}};
  if (kAdds) plan.outputs.push_back(x);
  return plan;
}

RmsNormPlan PlanGemmaRmsNorm(const OpContext& op, Check& check) {
  RmsNormPlan plan = PlanRmsNorm<false>(op, check);
  plan.adds_one = true;
  return plan;
}

// Output x = x1 + x2, rounded to its type.
void StoreSum(const RmsNormPlan& plan, const KernelArgs& args, int part, int64_t r) {
  const int64_t n = plan.columns;
  float *sum = plan.x_row(args) + part * n, *room = plan.x2_row(args) + part * n;
  const float* a = LoadRow(plan.x_dtype, args.in[plan.x_slot], r * n, n, sum);
  const float* b = LoadRow(plan.x_dtype, args.in[*plan.x2_slot], r * n, n, room);
  for (int64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
  StoreRow(plan.x_dtype, sum, args.out[2], r * n, n);
}

void RunRmsNormRow(const RmsNormPlan& plan, const KernelArgs& args, int part, int64_t r,
                   const float* gamma) {
  const int64_t n = plan.columns;
  const bool adds = plan.x2_slot.has_value();
  if (adds) StoreSum(plan, args, part, r);
  const void* source = adds ? args.out[2] : args.in[plan.x_slot];
  const float* x = LoadRow(plan.x_dtype, source, r * n, n, plan.x_row(args) + part * n);
  const float rstd = NormaliseRow(plan.y_dtype, x, gamma, n, plan.epsilon, plan.rounds,
                                  plan.y_row(args) + part * n, args.out[0], r * n);
  if (plan.gives_rstd) static_cast<float*>(args.out[1])[r] = rstd;
}

Status RunRmsNorm(const RmsNormPlan& plan, const KernelArgs& args) {
  float* const room = plan.gamma_row(args);
  const float* gamma = LoadRow(plan.gamma_dtype, args.in[plan.gamma_slot], 0, plan.columns, room);
  if (plan.adds_one) {
    std::transform(gamma, gamma + plan.columns, room, [](float value) { return 1 + value; });
    gamma = room;
  }
  RunRanges(plan.parts.count, plan.rows, 1, [&](int part, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) RunRmsNormRow(plan, args, part, r, gamma);
  });
  return Status();
}

// ---- as loops, over the last dimension alone ----

// 1 / sqrt(mean(x^2) + epsilon).
LoopValue LoopRoot(const OpContext& op, LoopBuilder& loop, LoopValue x) {
  const LoopValue squares = loop.Emit(LoopOp::kRowSum, {loop.Emit(LoopOp::kSquare, {x})});
  return loop.Emit(
      LoopOp::kRootOfMeanOf, {squares},
      {static_cast<double>(loop.columns()), static_cast<double>(op.attr_float("epsilon")), 0});
}

constexpr std::string_view kOtherRows = "it is not normalised over rows of the last dimension";

// AddRmsNorm rounds the sum and the quotient as StoreSum and NormaliseRow do; GemmaRmsNorm adds one
// to gamma.
template <bool kAdds, bool kAddsOne = false>
void LoopRmsNorm(const OpContext& op, LoopBuilder& loop) {
  if (op.in("gamma").shape != Shape({loop.columns()})) {
    loop.Refuse(kOtherRows);
    return;
  }
  const int slot = op.slot(kAdds ? "x1" : "x");
  const auto rounded = [&](LoopValue v) { return kAdds ? loop.Round(v, op.in(slot).dtype) : v; };
  LoopValue x = loop.In(slot);
  if (kAdds) x = rounded(loop.Emit(LoopOp::kAdd, {x, loop.In(op.slot("x2"))}));
  const LoopValue root = LoopRoot(op, loop, x);
  const LoopValue scaled = rounded(loop.Emit(LoopOp::kMul, {x, root}));
  LoopValue gamma = loop.In(op.slot("gamma"));
  if (kAddsOne) gamma = loop.Emit(LoopOp::kAdd, {loop.Constant(1), gamma});
  loop.Give(loop.Emit(LoopOp::kMul, {scaled, gamma}));
  loop.Give(1, root);
  if (kAdds) loop.Give(2, x);
}

void LoopLayerNorm(const OpContext& op, LoopBuilder& loop) {
  const Shape& x = op.in("x").shape;
  const Result<std::vector<int64_t>> normalized = op.Ints("normalized_shape");
  if (!normalized.ok() || normalized->size() != 1 || x.dims().back() != loop.columns()) {
    loop.Refuse(kOtherRows);
    return;
  }
  const LoopValue row = loop.In(op.slot("x"));
  const LoopValue mean = loop.Emit(LoopOp::kMeanOf, {loop.Emit(LoopOp::kRowSum, {row})},
                                   {static_cast<double>(loop.columns()), 0, 0});
  const LoopValue centred = loop.Emit(LoopOp::kSub, {row, mean});
  const LoopValue root = LoopRoot(op, loop, centred);
  LoopValue y = loop.Emit(LoopOp::kMul, {centred, root});
  if (op.has("gamma")) y = loop.Emit(LoopOp::kMul, {y, loop.In(op.slot("gamma"))});
  if (op.has("beta")) y = loop.Emit(LoopOp::kAdd, {y, loop.In(op.slot("beta"))});
  loop.Give(y);
  loop.Give(1, mean);
  loop.Give(2, root);
}

}  // namespace

std::unique_ptr<Kernel> MakeRmsNormKernel(RmsNormPlan plan) {
  TakeRows(plan);
  return std::make_unique<define::PlannedKernel<RmsNormPlan, RunRmsNorm>>(std::move(plan));
}

std::unique_ptr<Kernel> MakeLayerNormKernel(LayerNormPlan plan) {
  TakeRows(plan);
  return std::make_unique<define::PlannedKernel<LayerNormPlan, RunLayerNorm>>(std::move(plan));
}

void RegisterNormOps(OpRegistry& registry) {
  const Axes rows = "x[.. g..!], gamma[g..] -> y[.. g..], rstd[.. 1..]";
  registry.Add(Define<PlanLayerNorm, RunLayerNorm>(
      "LayerNormV4(x, normalized_shape, gamma?, beta?; epsilon=1e-05) -> y, mean, rstd",
      {.value_inputs = {"normalized_shape"},
       .loop = LoopLayerNorm,
       .axes = "x[.. g..!], normalized_shape[#g], gamma[g..], beta[g..] -> y[.. g..], "
               "mean[.. 1..], rstd[.. 1..]"}));
  registry.Add(Define<PlanRmsNorm<false>, RunRmsNorm>("RmsNorm(x, gamma; epsilon=1e-06) -> y, rstd",
                                                      {.loop = LoopRmsNorm<false>, .axes = rows}));
  registry.Add(
      Define<PlanGemmaRmsNorm, RunRmsNorm>("GemmaRmsNorm(x, gamma; epsilon=1e-06) -> y, rstd",
                                           {.loop = LoopRmsNorm<false, true>, .axes = rows}));
  registry.Add(Define<PlanRmsNorm<true>, RunRmsNorm>(
      "AddRmsNorm(x1, x2, gamma; epsilon=1e-06) -> y, rstd, x",
      {.loop = LoopRmsNorm<true>,
       .axes = "x1[.. g..!], x2[.. g..], gamma[g..] -> y[.. g..], rstd[.. 1..], x[.. g..]"}));
}

}  // namespace npumesh
