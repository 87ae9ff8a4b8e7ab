// AddRmsNormDynamicQuant, RmsNormDynamicMxQuant and AddRmsNormDynamicMxQuant: an RMS norm whose
// result is quantised.
//
//   x = x1 + x2, rounded to its type;  y = x * rstd * gamma + beta in float32
//
// y is quantised as it is, without a rounding in between.
#include <algorithm>
#include <cstring>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/quant/family.h"
#include "graph/ops/quant/mx_block.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/quantised_row.h"
#include "graph/ops/toolbox/values/rms_row.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh {
namespace {

// The norm of rows of x (slot 0), or of x1 + x2 (slots 0 and 1).
struct NormRows {
  bool sums = false;
  int64_t rows = 0, columns = 0;
  DataType dtype = DataType::kUndefined;
  Factors gamma, beta;
  double epsilon = 0;

  // Fills `row` with the norm of row r. `sum`: where x1 + x2 goes, null: nowhere. `room` has
  // `columns` floats. Returns 1 / rms.
  float Load(const KernelArgs& args, int64_t r, void* sum, float* room, float* row) const {
    LoadNumbers(dtype, args.in[0], r * columns, columns, row);
    if (sums) {
      AddRow(row, LoadRow(dtype, args.in[1], r * columns, columns, room), columns, row);
      StoreRow(dtype, row, sum, r * columns, columns);
      LoadNumbers(dtype, sum, r * columns, columns, row);
    }
    const float rstd = RmsScale(row, columns, epsilon);
    ScaleRow(row, rstd, columns, row);
    gamma.Load(args, 0, columns, room);
    MultiplyRow(row, room, columns, row);
    if (beta.given()) {
      beta.Load(args, 0, columns, room);
      AddRow(row, room, columns, row);
    }
    return rstd;
  }
};

NormRows NormRowsOf(Check& check, const OpContext& op, bool sums) {
  NormRows norm;
  check.RankAtLeast(sums ? "x1" : "x", kFloats, 1);
  if (sums) check.SameTensor("x2", "x1");
  if (!check.ok()) return norm;
  const TensorType& x = op.in(0);
  norm.sums = sums;
  norm.dtype = x.dtype;
  norm.columns = x.shape.dims().back();
  norm.rows = ElementsBetween(x.shape, 0, x.shape.rank() - 1);
  norm.epsilon = static_cast<double>(op.attr_float("epsilon"));
  norm.gamma = check.Take(Factors::Of(op, "gamma"));
  check.Elements("gamma", {norm.columns});
  norm.beta = FactorsOf(check, op, "beta", {norm.columns});
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

Result<DynamicNormPlan> PlanDynamicNorm(const OpContext& op) {
  Check check(op);
  DynamicNormPlan plan;
  plan.norm = NormRowsOf(check, op, true);
  const int64_t columns = plan.norm.columns;
  plan.dtype = check.TypeOf("dst_type", kNarrow);
  check.Keep(CheckPacking(op, plan.dtype, op.in("x1").shape));
  plan.smooth[0] = FactorsOf(check, op, "smooth_scale1", {columns});
  plan.smooth[1] = FactorsOf(check, op, "smooth_scale2", {columns});
  ReadWanted(check, op, plan);
  if (!check.ok()) return check.status();
  const TensorType& x = op.in("x1");
  const TensorType y = {plan.dtype, x.shape};
  const TensorType scale = {DataType::kFloat, WithoutLast(x.shape)};
  plan.outputs = {y, y, x, scale, scale};
  plan.scratch.Take(columns, {&plan.row, &plan.scaled, &plan.room});
  return check.Done(std::move(plan));
}

// Row r of result i from the norm in plan.row.
void Quantise(const DynamicNormPlan& plan, const KernelArgs& args, int i, int64_t r) {
  const int64_t n = plan.norm.columns;
  float *scaled = plan.scaled(args), *room = plan.room(args);
  std::copy_n(plan.row(args), n, scaled);
  if (plan.smooth[i].given()) {
    plan.smooth[i].Load(args, 0, n, room);
    MultiplyRow(scaled, room, n, scaled);
  }
  static_cast<float*>(args.out[3 + i])[r] = QuantiseRow(
      plan.dtype, Rounding::kNearest, LargestNarrow(plan.dtype), scaled, n, args.out[i], r * n);
}

// Results that are not wanted are zeros.
Status RunDynamicNorm(const DynamicNormPlan& plan, const KernelArgs& args) {
  for (const int i : {0, 1}) {
    if (plan.wanted[i]) continue;
    std::memset(args.out[i], 0, plan.outputs[0].bytes());
    std::fill_n(static_cast<float*>(args.out[3 + i]), plan.norm.rows, 0.0f);
  }
  for (int64_t r = 0; r < plan.norm.rows; ++r) {
    plan.norm.Load(args, r, args.out[2], plan.room(args), plan.row(args));
    for (const int i : {0, 1}) {
      if (plan.wanted[i]) Quantise(plan, args, i, r);
    }
  }
  return Status();
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
Result<MxNormPlan> PlanMxNorm(const OpContext& op) {
  Check check(op);
  MxNormPlan plan;
  plan.norm = NormRowsOf(check, op, kSums);
  plan.format = MxFormatOf(check, op);
  CheckMxPacking(check, plan.format.dtype, op.in(0).shape);
  if (!check.ok()) return check.status();
  const TensorType& x = op.in(0);
  const int last = x.shape.rank() - 1;
  plan.axis = MxAxisOf(x.shape, last, kMxBlock);
  plan.gives_rstd = op.attr_bool("output_rstd");
  plan.outputs = {{plan.format.dtype, x.shape}};
  if (kSums) plan.outputs.push_back(x);
  plan.outputs.push_back({DataType::kFloat8E8M0, MxScaleShape(x.shape, last, kMxBlock)});
  plan.outputs.push_back({DataType::kFloat, WithoutLast(x.shape)});
  plan.scratch.Take(plan.norm.columns, {&plan.row, &plan.room});
  return check.Done(std::move(plan));
}

Status RunMxNorm(const MxNormPlan& plan, const KernelArgs& args) {
  const int first = plan.norm.sums ? 2 : 1;  // port of the scales
  auto* scales = static_cast<uint8_t*>(args.out[first]);
  auto* rstds = static_cast<float*>(args.out[first + 1]);
  void* sum = plan.norm.sums ? args.out[1] : nullptr;
  float* row = plan.row(args);
  std::memset(scales, 0, static_cast<size_t>(plan.axis.outer * plan.axis.pairs() * 2));
  for (int64_t r = 0; r < plan.norm.rows; ++r) {
    const float rstd = plan.norm.Load(args, r, sum, plan.room(args), row);
    rstds[r] = plan.gives_rstd ? rstd : 0.0f;
    for (int64_t b = 0; b < plan.axis.blocks(); ++b) {
      QuantiseMxBlock(plan.format, plan.axis, r, b, row + b * kMxBlock, args.out[0], scales);
    }
  }
  return Status();
}

}  // namespace

void RegisterNormQuantOps(OpRegistry& registry) {
  registry.Add(Define<PlanDynamicNorm, RunDynamicNorm>(
      "AddRmsNormDynamicQuant(x1, x2, gamma, smooth_scale1?, smooth_scale2?, beta?; "
      "epsilon=1e-06, output_mask:bools=[], dst_type=2) -> y1, y2, x_out, scale1, scale2"));
  registry.Add(Define<PlanMxNorm<false>, RunMxNorm>(
      "RmsNormDynamicMxQuant(x, gamma, beta?; epsilon=1e-06, scale_alg=0, round_mode=\"rint\", "
      "dst_type=40, output_rstd=false) -> y, mxscale, rstd"));
  registry.Add(Define<PlanMxNorm<true>, RunMxNorm>(
      "AddRmsNormDynamicMxQuant(x1, x2, gamma, beta?; epsilon=1e-06, scale_alg=0, "
      "round_mode=\"rint\", dst_type=40, output_rstd=false) -> y, x, mxscale, rstd"));
}

}  // namespace npumesh
