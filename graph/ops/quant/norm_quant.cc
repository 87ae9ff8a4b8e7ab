// AddRmsNormDynamicQuant, RmsNormDynamicMxQuant and AddRmsNormDynamicMxQuant, RmsNormQuant,
// RmsNormQuantV2 and AddRmsNormQuant: an RMS norm whose result is quantised.
//
//   x = x1 + x2, rounded to its type;  y = x * rstd * gamma + beta in float32
//
// y is quantised as it is, without a rounding in between.
#include <algorithm>

#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/quant/mx_block.h"
#include "graph/ops/toolbox/rows/norm_view.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/quantised_row.h"
#include "graph/ops/toolbox/values/rms_row.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh {
namespace {

// The norm of rows of x, or of x1 + x2.
struct NormRows {
  InputRows x, summand;
  Factors gamma, beta;
  double epsilon = 0;
  int axis = 0;  // where the dimensions of a row begin

  // Fills `row` with the norm of row r. `sum`: where x1 + x2 goes, null: nowhere. `room` has place
  // for a row. Returns 1 / rms.
  float Load(const KernelArgs& args, int64_t r, void* sum, float* room, float* row) const {
    const int64_t columns = x.width;
    x.Load(args, r, row);
    if (summand.given()) {
      const void* data = args.in[summand.slot];
      AddRow(row, LoadRow(x.dtype, data, r * columns, columns, room), columns, row);
      StoreRow(x.dtype, row, sum, r * columns, columns);
      LoadNumbers(x.dtype, sum, r * columns, columns, row);
    }
    const float rstd = RmsScale(row, columns, epsilon);
    ScaleRow(row, rstd, columns, row);
    ScaleColumns(args, gamma, beta, 0, columns, room, row);
    return rstd;
  }
};

// Rows of the last dimension; where they `span` more, of as many as gamma has.
NormRows NormRowsOf(Check& check, const OpContext& op, bool sums, bool span = true) {
  NormRows norm;
  const std::string_view port = sums ? "x1" : "x";
  check.RankAtLeast(port, kFloats, 1);
  if (sums) check.SameTensor("x2", "x1");
  if (!check.ok()) return norm;
  const auto& [dtype, x] = op.in(port);
  const Shape& gamma = op.in("gamma").shape;
  norm.axis = x.rank() - (span && gamma.rank() > 1 && EndsWith(x, gamma) ? gamma.rank() : 1);
  norm.x = {op.slot(port), dtype, ElementsBetween(x, 0, norm.axis),
            ElementsBetween(x, norm.axis, x.rank())};
  if (sums) {
    norm.summand = norm.x;
    norm.summand.slot = op.slot("x2");
  }
  norm.epsilon = static_cast<double>(op.attr_float("epsilon"));
  norm.gamma = check.Take(Factors::Of(op, "gamma"));
  check.Elements("gamma", {norm.x.width});
  norm.beta = FactorsOf(check, op, "beta", {norm.x.width});
  return norm;
}

// ---- AddRmsNormDynamicQuant ----

struct DynamicNormPlan : Planned {
  NormRows norm;
  DataType dtype = DataType::kInt8;
  Factors smooth[2];
  bool wanted[2] = {true, false};
  Workspace<float> row, scaled, room;
};

// Which of the two results are wanted: by the attribute output_mask, or those that are smoothed.
void ReadWanted(Check& check, const OpContext& op, DynamicNormPlan& plan) {
  const AttrValue* mask = op.node().FindAttr("output_mask");
  const ListAttr* list = mask != nullptr ? mask->get<ListAttr>() : nullptr;
  plan.wanted[1] = plan.smooth[1].given();
  if (list != nullptr && !list->b.empty()) {
    check.That(list->b.size() == 2, "output_mask has {} entries, expected 2", list->b.size());
    plan.wanted[0] = list->b.front();
    plan.wanted[1] = list->b.back();
  }
  for (const int i : {0, 1}) {
    check.That(plan.wanted[i] || !plan.smooth[i].given(),
               "smooth_scale{} is fed and output_mask false, expected output {} wanted", i + 1,
               i + 1);
  }
  check.That(list != nullptr || plan.smooth[0].given() || !plan.smooth[1].given(),
             "smooth_scale2 is fed without smooth_scale1 and without output_mask");
}

DynamicNormPlan PlanDynamicNorm(const OpContext& op, Check& check) {
  DynamicNormPlan plan;
  plan.norm = NormRowsOf(check, op, true);
  const int64_t columns = plan.norm.x.width;
  plan.dtype = check.TypeOf("dst_type", kNarrow);
  CheckPacking(check, plan.dtype, op.in("x1").shape);
  plan.smooth[0] = FactorsOf(check, op, "smooth_scale1", {columns});
  plan.smooth[1] = FactorsOf(check, op, "smooth_scale2", {columns});
  ReadWanted(check, op, plan);
  if (!check.ok()) return plan;
  const TensorType& x = op.in("x1");
  // Of a result that is not wanted one element is left.
  const auto shaped = [&plan](int i, const Shape& shape) {
    return plan.wanted[i] ? shape : Shape{1};
  };
  const Shape rows = Spliced(x.shape, plan.norm.axis, x.shape.rank(), {});
  plan.outputs = {{plan.dtype, shaped(0, x.shape)},
                  {plan.dtype, shaped(1, x.shape)},
                  x,
                  {DataType::kFloat, shaped(0, rows)},
                  {DataType::kFloat, shaped(1, rows)}};
  plan.scratch.Take(columns, {&plan.row, &plan.scaled, &plan.room});
  return plan;
}

// Row r of result i from the norm in plan.row.
void Quantise(const DynamicNormPlan& plan, const KernelArgs& args, int i, int64_t r) {
  const int64_t n = plan.norm.x.width;
  float *scaled = plan.scaled(args), *room = plan.room(args);
  std::copy_n(plan.row(args), n, scaled);
  ScaleColumns(args, plan.smooth[i], {}, 0, n, room, scaled);
  static_cast<float*>(args.out[3 + i])[r] = QuantiseRow(
      plan.dtype, Rounding::kNearest, LargestNarrow(plan.dtype), scaled, n, args.out[i], r * n);
}

// Results that are not wanted are zeros.
Status RunDynamicNorm(const DynamicNormPlan& plan, const KernelArgs& args) {
  for (const int i : {0, 1}) {
    if (plan.wanted[i]) continue;
    ClearOutput(plan, args, i);
    ClearOutput(plan, args, 3 + i);
  }
  for (int64_t r = 0; r < plan.norm.x.count; ++r) {
    plan.norm.Load(args, r, args.out[2], plan.room(args), plan.row(args));
    for (const int i : {0, 1}) {
      if (plan.wanted[i]) Quantise(plan, args, i, r);
    }
  }
  return Status();
}

// As a loop; results that are not wanted are not given.
void LoopDynamicNorm(const OpContext& op, LoopBuilder& loop) {
  Check check(op);
  const DynamicNormPlan plan = PlanDynamicNorm(op, check);
  if (!check.ok() || !SpansRows(op, "x1", loop) || plan.norm.x.width != loop.columns()) return;
  const NormRows& norm = plan.norm;
  const LoopValue sum = loop.Emit(LoopOp::kAdd, {loop.In(norm.x.slot), loop.In(norm.summand.slot)});
  const LoopValue x = loop.To(norm.x.dtype, sum);
  const LoopValue squares = loop.Emit(LoopOp::kRowSum, {loop.Emit(LoopOp::kSquare, {x})});
  const LoopValue rstd = loop.Emit(LoopOp::kRootOfMeanOf, {squares},
                                   {static_cast<double>(norm.x.width), norm.epsilon, 0});
  LoopValue y = loop.Emit(LoopOp::kMul, {x, rstd});
  y = LoopWith(op, loop, LoopOp::kMul, y, norm.gamma);
  y = LoopWith(op, loop, LoopOp::kAdd, y, norm.beta);
  for (const int i : {0, 1}) {
    if (!plan.wanted[i]) continue;
    const LoopValue smoothed = LoopWith(op, loop, LoopOp::kMul, y, plan.smooth[i]);
    const LoopQuantised quantised = LoopQuantiseRow(loop, plan.dtype, Rounding::kNearest, smoothed);
    loop.Give(i, quantised.row);
    loop.Give(3 + i, quantised.scale);
  }
  loop.Give(2, x);
}

// ---- RmsNormDynamicMxQuant, AddRmsNormDynamicMxQuant ----

struct MxNormPlan : Planned {
  NormRows norm;
  MxFormat format;
  MxAxis axis;
  bool gives_rstd = false;
  Workspace<float> row, room;
};

// Outputs: y, the sum if there is one, scales, rstd.
template <bool kSums>
MxNormPlan PlanMxNorm(const OpContext& op, Check& check) {
  MxNormPlan plan;
  plan.norm = NormRowsOf(check, op, kSums, false);
  const TensorType& x = op.in(0);
  plan.format = MxFormatOf(check, op, x.shape);
  if (!check.ok()) return plan;
  const int last = x.shape.rank() - 1;
  plan.axis = MxAxisOf(x.shape, last);
  plan.gives_rstd = op.attr_bool("output_rstd");
  plan.outputs = {{plan.format.dtype, x.shape}};
  if (kSums) plan.outputs.push_back(x);
  plan.outputs.push_back(MxScaleType(x.shape, last));
  plan.outputs.push_back({DataType::kFloat, WithoutLast(x.shape)});
  plan.scratch.Take(plan.norm.x.width, {&plan.row, &plan.room});
  return plan;
}

Status RunMxNorm(const MxNormPlan& plan, const KernelArgs& args) {
  const bool sums = plan.norm.summand.given();
  const int scales = sums ? 2 : 1;  // port
  auto* rstds = static_cast<float*>(args.out[scales + 1]);
  float* row = plan.row(args);
  ClearOutput(plan, args, scales);
  for (int64_t r = 0; r < plan.norm.x.count; ++r) {
    const float rstd = plan.norm.Load(args, r, sums ? args.out[1] : nullptr, plan.room(args), row);
    rstds[r] = plan.gives_rstd ? rstd : 0.0f;
    QuantiseMxRow(plan.format, plan.axis, r, row, args.out[0], args.out[scales]);
  }
  return Status();
}

// ---- RmsNormQuant, RmsNormQuantV2, AddRmsNormQuant ----

struct StaticNormPlan : Planned {
  NormRows norm;
  DataType dtype = DataType::kInt8;
  bool divides = true;  // by the scales; else they are factors
  int results = 1;      // outputs y1 and, of the operators that have it, y2; then the sum
  Factors scales[2], offsets[2];
  Workspace<float> row, scaled, room;
};

StaticNormPlan PlanStaticNorm(const OpContext& op, bool sums, Check& check) {
  StaticNormPlan plan;
  plan.norm = NormRowsOf(check, op, sums);
  plan.dtype = check.TypeOf("dst_type", kNarrow);
  const TensorType& x = op.in(0);
  CheckPacking(check, plan.dtype, x.shape);
  plan.scratch.Take(plan.norm.x.width, {&plan.row, &plan.scaled, &plan.room});
  return plan;
}

// RmsNormQuant: one result.
StaticNormPlan PlanNormQuant(const OpContext& op, Check& check) {
  StaticNormPlan plan = PlanStaticNorm(op, false, check);
  const int64_t columns = plan.norm.x.width;
  plan.scales[0] = FactorsOf(check, op, "scale", {1, columns});
  plan.offsets[0] = FactorsOf(check, op, "offset", {1, columns});
  plan.outputs = {{plan.dtype, op.in("x").shape}};
  return plan;
}

// The others: two results, of which the second is zeros without its scales.
template <bool kSums>
StaticNormPlan PlanTwoNormQuants(const OpContext& op, Check& check) {
  StaticNormPlan plan = PlanStaticNorm(op, kSums, check);
  const int64_t columns = plan.norm.x.width;
  plan.results = 2;
  plan.divides = op.attr_bool("div_mode");
  plan.scales[0] = FactorsOf(check, op, "scales1", {1, columns});
  plan.scales[1] = FactorsOf(check, op, "scales2", {1, columns});
  plan.offsets[0] = FactorsOf(check, op, "zero_points1", {1, columns});
  plan.offsets[1] = FactorsOf(check, op, "zero_points2", {1, columns});
  check.That(plan.scales[1].given() || !plan.offsets[1].given(),
             "zero_points2 are fed without scales2");
  const TensorType y = {plan.dtype, op.in(0).shape};
  plan.outputs = {y, y};
  if (kSums) plan.outputs.push_back(op.in(0));
  return plan;
}

// Row r of result i from the norm in plan.row.
void QuantiseBy(const StaticNormPlan& plan, const KernelArgs& args, int i, int64_t r) {
  const int64_t n = plan.norm.x.width;
  float *scaled = plan.scaled(args), *room = plan.room(args);
  std::copy_n(plan.row(args), n, scaled);
  if (plan.divides) {
    LoadColumns(args, plan.scales[i], 0, n, room);
    for (int64_t c = 0; c < n; ++c) scaled[c] /= room[c];
  } else {
    ScaleColumns(args, plan.scales[i], {}, 0, n, room, scaled);
  }
  ScaleColumns(args, {}, plan.offsets[i], 0, n, room, scaled);
  StoreNarrow(plan.dtype, Rounding::kNearest, scaled, args.out[i], r * n, n);
}

Status RunStaticNorm(const StaticNormPlan& plan, const KernelArgs& args) {
  const bool sums = plan.norm.summand.given();
  if (plan.results == 2 && !plan.scales[1].given()) ClearOutput(plan, args, 1);
  for (int64_t r = 0; r < plan.norm.x.count; ++r) {
    plan.norm.Load(args, r, sums ? args.out[plan.results] : nullptr, plan.room(args),
                   plan.row(args));
    for (int i = 0; i < plan.results; ++i) {
      if (plan.scales[i].given()) QuantiseBy(plan, args, i, r);
    }
  }
  return Status();
}

}  // namespace

void RegisterNormQuantOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanDynamicNorm, RunDynamicNorm>(
      "AddRmsNormDynamicQuant(x1, x2, gamma, smooth_scale1?, smooth_scale2?, beta?; "
      "epsilon=1e-06, output_mask:bools=[], dst_type=2) -> y1, y2, x_out, scale1, scale2",
      {.loop = LoopDynamicNorm}));
  registry.Add(Define<PlanNormQuant, RunStaticNorm>(
      "RmsNormQuant(x, gamma, beta, scale, offset; epsilon=1e-06, high_precision_mode=false, "
      "gemma_mode==false, dst_type=2) -> y"));
  registry.Add(Define<PlanTwoNormQuants<false>, RunStaticNorm>(
      "RmsNormQuantV2(x, gamma, scales1, scales2?, zero_points1?, zero_points2?, beta?; "
      "epsilon=1e-06, div_mode=true, dst_type=2) -> y1, y2"));
  registry.Add(Define<PlanTwoNormQuants<true>, RunStaticNorm>(
      "AddRmsNormQuant(x1, x2, gamma, scales1, scales2?, zero_points1?, zero_points2?, beta?; "
      "axis==-1, epsilon=1e-06, div_mode=true, dst_type=2) -> y1, y2, x"));
  registry.Add(Define<PlanMxNorm<false>, RunMxNorm>(
      "RmsNormDynamicMxQuant(x, gamma, beta?; epsilon=1e-06, scale_alg=0, round_mode=\"rint\", "
      "dst_type=40, output_rstd=false) -> y, mxscale, rstd"));
  registry.Add(Define<PlanMxNorm<true>, RunMxNorm>(
      "AddRmsNormDynamicMxQuant(x1, x2, gamma, beta?; epsilon=1e-06, scale_alg=0, "
      "round_mode=\"rint\", dst_type=40, output_rstd=false) -> y, x, mxscale, rstd"));
}

}  // namespace npumesh
