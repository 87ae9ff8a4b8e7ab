// LayerNorm, LayerNormV3, AddLayerNorm, DeepNorm, AddRmsNormCast, and the gradients
// LayerNormGradV3, RmsNormGrad, AddLayerNormGrad and DeepNormGrad. LayerNormV4, RmsNorm and
// AddRmsNorm, which models are full of, are in norm.cc.
#include <algorithm>

#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/norm_view.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// ---- LayerNorm, LayerNormV3 ----

template <bool kGivesRstd>
NormPlan PlanByAxes(const OpContext& op, Check& check) {
  check.Keep(ExpectAllReal(op));
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank();
  const int axis = check.Axis("begin_norm_axis", rank);
  const int params = check.Axis("begin_params_axis", rank);
  NormPlan plan;
  plan.view = LayerView(x.shape, axis, ElementsBetween(x.shape, params, rank));
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.gives_rstd = kGivesRstd;
  for (const std::string_view port : {"gamma", "beta"}) {
    check.Keep(ExpectCount(op, port, plan.view.params, "place behind begin_params_axis"));
  }
  const TensorType statistics = {x.dtype, StatisticsShape(x.shape, axis)};
  plan.outputs = {x, statistics, statistics};
  return plan;
}

// ---- gradients ----

// Inputs dy, x, rstd, gamma; of a norm that subtracts the mean dy, x, rstd, mean, gamma. x was
// normalised over as many last dimensions as gamma has.
template <bool kCentred>
NormPlan PlanLayerNormGrad(const OpContext& op, Check& check) {
  check.Keep(ExpectAllReal(op));
  check.Keep(ExpectSameShape(op, "dy", "x"));
  const Shape &x = op.in("x").shape, &gamma = op.in("gamma").shape;
  check.That(gamma.rank() > 0 && EndsWith(x, gamma),
             "x is {}, which does not end with the shape of gamma, {}", x, gamma);
  if (!check.ok()) return {};
  NormPlan plan;
  plan.view = LayerView(x, x.rank() - gamma.rank(), gamma.elements());
  check.Keep(ExpectCount(op, "rstd", plan.view.statistics, "row of x"));
  if (kCentred) check.Keep(ExpectCount(op, "mean", plan.view.statistics, "row of x"));
  plan.outputs = {{op.in("dy").dtype, x}, {DataType::kFloat, gamma}};
  if (kCentred) plan.outputs.push_back({DataType::kFloat, gamma});
  return plan;
}

template <bool kCentred>
Status RunLayerNormGrad(const NormPlan& plan, RealTensors& t) {
  const Reals none;
  const Reals &mean = kCentred ? t.in[3] : none, &gamma = t.in[kCentred ? 4 : 3];
  NormGradient(plan.view, {t.in[0], t.in[1], mean, t.in[2], gamma}, &t.out[0], &t.out[1],
               kCentred ? &t.out[2] : nullptr, &t.room[0]);
  return Status();
}

// ---- sums that are normalised over the dimensions of gamma ----

struct SumPlan : NormPlan {
  double alpha = 1;            // factor of x
  TensorType sum;              // of x1 + x2
  TensorType statistics;       // of means and the like
  ConvertFn narrow = nullptr;  // from double to the type of the sum
  ConvertFn widen = nullptr;
};

// Plans the norm of x1 + x2 over the last dimensions, which those of gamma are; `vectors` have
// gamma's elements. x1 and x2 have one shape, and one type, which is that of the sum; where types
// are `mixed`, the sum of two types is float32.
SumPlan PlanSum(const OpContext& op, std::string_view x1, std::string_view x2,
                std::initializer_list<std::string_view> vectors, bool mixed, Check& check) {
  check.Keep(ExpectAllReal(op));
  check.Keep(ExpectSameShape(op, x2, x1));
  if (!mixed) check.SameType(x2, x1);
  const TensorType& x = op.in(x1);
  const Shape& gamma = op.in("gamma").shape;
  check.That(x.shape.rank() > 0, "\"{}\" is a scalar, expected rows", x1);
  SumPlan plan;
  if (!check.ok()) return plan;
  // gamma in any other shape counts as one row of columns.
  const int axis = EndsWith(x.shape, gamma) && gamma.rank() > 0 ? x.shape.rank() - gamma.rank()
                                                                : x.shape.rank() - 1;
  const int64_t columns = ElementsBetween(x.shape, axis, x.shape.rank());
  check.Keep(ExpectCount(op, "gamma", columns, "column"));
  for (const std::string_view port : vectors) {
    check.Keep(ExpectCount(op, port, columns, "column"));
  }
  plan.view = LayerView(x.shape, axis, columns);
  plan.sum = {x.dtype == op.in(x2).dtype ? x.dtype : DataType::kFloat, x.shape};
  plan.statistics = {DataType::kFloat, StatisticsShape(x.shape, axis)};
  return plan;
}

// y = the norm of `sum`, which may be y.
void NormaliseSum(const SumPlan& plan, const Reals& sum, const Reals& gamma, const Reals& beta,
                  Reals* mean, Reals* rstd, Reals* y) {
  FindMoments(plan.view, sum, mean, rstd);
  FindRstd(*rstd, plan.epsilon, rstd);
  Normalise(plan.view, sum, *mean, *rstd, gamma, beta, y);
}

SumPlan PlanAddLayerNorm(const OpContext& op, Check& check) {
  SumPlan plan = PlanSum(op, "x1", "x2", {"beta"}, true, check);
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  if (op.has("bias") && op.in("bias").shape != op.in("x1").shape) {
    check.Keep(ExpectCount(op, "bias", plan.view.params, "column"));
  }
  plan.outputs = {plan.sum, plan.statistics, plan.statistics, plan.sum};
  return plan;
}

Status RunAddLayerNorm(const SumPlan& plan, RealTensors& t) {
  const Reals& bias = t.in[4];
  Reals& sum = t.out[3];
  for (size_t i = 0; i < sum.size(); ++i) {
    sum[i] = t.in[0][i] + t.in[1][i] + (bias.empty() ? 0.0 : bias[i % bias.size()]);
  }
  NormaliseSum(plan, sum, t.in[2], t.in[3], &t.out[1], &t.out[2], &t.out[0]);
  return Status();
}

SumPlan PlanDeepNorm(const OpContext& op, Check& check) {
  SumPlan plan = PlanSum(op, "x", "gx", {"beta"}, false, check);
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.alpha = static_cast<double>(op.attr_float("alpha"));
  plan.outputs = {plan.statistics, plan.statistics, plan.sum};
  return plan;
}

Status RunDeepNorm(const SumPlan& plan, RealTensors& t) {
  Reals& y = t.out[2];
  for (size_t i = 0; i < y.size(); ++i) y[i] = plan.alpha * t.in[0][i] + t.in[1][i];
  NormaliseSum(plan, y, t.in[3], t.in[2], &t.out[0], &t.out[1], &y);
  return Status();
}

SumPlan PlanAddRmsNormCast(const OpContext& op, Check& check) {
  SumPlan plan = PlanSum(op, "x1", "x2", {}, false, check);
  const TensorType& x = op.in("x1");
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.narrow = FindConvert(DataType::kDouble, x.dtype);
  plan.widen = FindConvert(x.dtype, DataType::kDouble);
  plan.outputs = {{DataType::kFloat, x.shape}, x, plan.statistics, x};
  return plan;
}

// Rounds values to the type of the sum.
void Round(const SumPlan& plan, Reals* values) {
  constexpr size_t kBlock = 512;
  double narrow[kBlock];
  for (size_t first = 0; first < values->size(); first += kBlock) {
    const size_t count = std::min(kBlock, values->size() - first);
    plan.narrow(values->data() + first, narrow, count);
    plan.widen(narrow, values->data() + first, count);
  }
}

// Rounds where AddRmsNorm of A2 and A3 does: the sum, and x * rstd before gamma.
Status RunAddRmsNormCast(const SumPlan& plan, RealTensors& t) {
  const Reals none;
  Reals &y = t.out[1], &rstd = t.out[2], &sum = t.out[3];
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = t.in[0][i] + t.in[1][i];
  Round(plan, &sum);
  const double count = plan.view.count();
  plan.view.ForEach([&](size_t e, size_t s, size_t) { rstd[s] += sum[e] * sum[e] / count; });
  FindRstd(rstd, plan.epsilon, &rstd);
  Normalise(plan.view, sum, none, rstd, none, none, &y);
  Round(plan, &y);
  plan.view.ForEach([&](size_t e, size_t, size_t p) { y[e] *= t.in[2][p]; });
  Round(plan, &y);
  t.out[0] = y;
  return Status();
}

// ---- gradients of sums ----

SumPlan PlanSumGrad(const OpContext& op, std::string_view x1, std::string_view x2, bool mixed,
                    Check& check) {
  SumPlan plan = PlanSum(op, x1, x2, {}, mixed, check);
  check.Keep(ExpectSameShape(op, "dy", x1));
  if (!check.ok()) return plan;
  for (const std::string_view port : {"mean", "rstd"}) {
    check.Keep(ExpectCount(op, port, plan.view.statistics, "row of x"));
  }
  return plan;
}

SumPlan PlanAddLayerNormGrad(const OpContext& op, Check& check) {
  SumPlan plan = PlanSumGrad(op, "x1", "x2", true, check);
  if (op.has("dsum")) check.Keep(ExpectSameShape(op, "dsum", "x1"));
  const TensorType vector = {DataType::kFloat, op.in("gamma").shape};
  plan.outputs = {op.in("x1"), vector, vector};
  return plan;
}

// Inputs dy, x1, x2, rstd, mean, gamma, dsum.
Status RunAddLayerNormGrad(const SumPlan& plan, RealTensors& t) {
  Reals& sum = t.room[1];
  sum.resize(t.in[1].size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = t.in[1][i] + t.in[2][i];
  NormGradient(plan.view, {t.in[0], sum, t.in[4], t.in[3], t.in[5]}, &t.out[0], &t.out[1],
               &t.out[2], &t.room[0]);
  const Reals& dsum = t.in[6];
  for (size_t i = 0; i < dsum.size(); ++i) t.out[0][i] += dsum[i];
  return Status();
}

SumPlan PlanDeepNormGrad(const OpContext& op, Check& check) {
  SumPlan plan = PlanSumGrad(op, "x", "gx", false, check);
  plan.alpha = static_cast<double>(op.attr_float("alpha"));
  const TensorType vector = {DataType::kFloat, op.in("gamma").shape};
  plan.outputs = {plan.sum, plan.sum, vector, vector};
  return plan;
}

// Inputs dy, x, gx, gamma, mean, rstd.
Status RunDeepNormGrad(const SumPlan& plan, RealTensors& t) {
  Reals &dx = t.out[0], &dgx = t.out[1], &sum = t.room[1];
  sum.resize(t.in[1].size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = plan.alpha * t.in[1][i] + t.in[2][i];
  NormGradient(plan.view, {t.in[0], sum, t.in[4], t.in[5], t.in[3]}, &dgx, &t.out[3], &t.out[2],
               &t.room[0]);
  for (size_t i = 0; i < dx.size(); ++i) dx[i] = plan.alpha * dgx[i];
  return Status();
}

}  // namespace

void RegisterLayerNormOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  registry.Add(
      DefineReal<PlanByAxes<false>, RunNorm>("LayerNorm(x, gamma, beta; begin_norm_axis=0, "
                                             "begin_params_axis=0, epsilon=1e-07) -> y, mean, "
                                             "variance"));
  registry.Add(DefineReal<PlanByAxes<true>, RunNorm>(
      "LayerNormV3(x, gamma, beta; begin_norm_axis=0, begin_params_axis=0, epsilon=1e-05) -> y, "
      "mean, rstd"));
  registry.Add(DefineReal<PlanLayerNormGrad<true>, RunLayerNormGrad<true>>(
      "LayerNormGradV3(dy, x, rstd, mean, gamma; output_mask==[true,true,true]) -> pd_x, pd_gamma, "
      "pd_beta"));
  registry.Add(DefineReal<PlanLayerNormGrad<false>, RunLayerNormGrad<false>>(
      "RmsNormGrad(dy, x, rstd, gamma) -> dx, dgamma"));
  registry.Add(DefineReal<PlanAddLayerNorm, RunAddLayerNorm>(
      "AddLayerNorm(x1, x2, gamma, beta, bias?; epsilon=1e-05, additional_output=false) -> y, "
      "mean, rstd, x"));
  registry.Add(DefineReal<PlanDeepNorm, RunDeepNorm>(
      "DeepNorm(x, gx, beta, gamma; alpha=0.3, epsilon=1e-06) -> mean, rstd, y"));
  registry.Add(DefineReal<PlanAddRmsNormCast, RunAddRmsNormCast>(
      "AddRmsNormCast(x1, x2, gamma; epsilon=1e-06) -> y1, y2, rstd, x"));
  registry.Add(DefineReal<PlanAddLayerNormGrad, RunAddLayerNormGrad>(
      "AddLayerNormGrad(dy, x1, x2, rstd, mean, gamma, dsum?) -> dx, dgamma, dbeta"));
  registry.Add(DefineReal<PlanDeepNormGrad, RunDeepNormGrad>(
      "DeepNormGrad(dy, x, gx, gamma, mean, rstd; alpha=0.3) -> dx, dgx, dbeta, dgamma"));
}

}  // namespace npumesh
