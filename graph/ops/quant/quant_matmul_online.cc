// QuantMatmulDequant and QuantGroupedMatmulDequant: the left operand is quantised on the way.
//
//   x' = x * smooth_scale;  s = x_scale, or max|row of x'| / 127;  q = int8(x' / s)
//   y = (q w + bias) * weight_scale * s
//
// A weight_scale in 64 bits has x_scale multiplied in already.
#include <string>

#include "graph/ops/quant/quant_matmul.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/values/quantised_row.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

struct OnlinePlan : ProductPlan {
  InputRows x;
  int64_t n = 0, groups = 1;
  bool transposed = false;
  bool folded = false;  // weight_scale includes x_scale
  Factors smooth, x_scale;
  Dequant dequant;  // of all groups
  GroupRows rows;
  Workspace<float> row, smoothing, scales;
  Workspace<int8_t> integers;
};

template <bool kGrouped>
void ReadOperands(Check& check, const OpContext& op, OnlinePlan& plan) {
  const Shape& w = op.in("quantized_weight").shape;
  const int rank = kGrouped ? 3 : 2;
  const int64_t k = check.Matrix("x", kFloats).width;
  check.Rank("quantized_weight", DataType::kInt8, rank);
  if (!check.ok()) return;
  plan.x = InputRows::Of(check, op, "x");
  plan.transposed = op.attr_bool("transpose_weight");
  plan.n = w[plan.transposed ? rank - 2 : rank - 1];
  plan.groups = kGrouped ? w[0] : 1;
  check.That(w[plan.transposed ? rank - 1 : rank - 2] == k,
             "quantized_weight is int8{}, expected {} with k = {} as x has", w,
             plan.transposed ? "[n,k]" : "[k,n]", k);
}

void ReadScales(Check& check, const OpContext& op, OnlinePlan& plan) {
  const int64_t columns = plan.groups * plan.n;
  plan.smooth = FactorsOf(check, op, "smooth_scale", {1, plan.x.width});
  plan.x_scale = FactorsOf(check, op, "x_scale", {1, plan.x.count});
  plan.dequant.scale = FactorsOf(check, op, "weight_scale", {1, columns});
  ReadBias(check, op, plan.dequant);
  check.Supported(!plan.dequant.after.given(), "bias is {}, expected int32", op.in("bias"));
  check.Elements("bias", {1, columns});
  check.OneOf("x_quant_mode", {"pertoken", "pertensor"});
  const bool whole = op.attr_string("x_quant_mode") == "pertensor";
  plan.folded = op.in("weight_scale").dtype == DataType::kInt64;
  check.Supported(!whole || plan.x_scale.count() == 1,
                  "x_quant_mode pertensor with {} x_scale, expected one", plan.x_scale.count());
  check.Supported(whole || !plan.folded, "weight_scale is int64, expected x_quant_mode pertensor");
}

template <bool kGrouped>
OnlinePlan PlanOnline(const OpContext& op, Check& check) {
  OnlinePlan plan;
  ReadOperands<kGrouped>(check, op, plan);
  ReadScales(check, op, plan);
  check.NotFed({"x_offset"});
  plan.rows = check.Take(GroupRows::Of(op, kGrouped ? "group_list" : "", false, plan.x.count));
  check.That(plan.rows.groups() == plan.groups, "group_list has {} entries for {} weights",
             plan.rows.groups(), plan.groups);
  plan.outputs = {{plan.x.dtype, {plan.x.count, plan.n}}};
  plan.TakeProduct(op, plan.x.width, true);
  plan.scratch.Take(plan.x.width, {&plan.row, &plan.smoothing});
  plan.scales = plan.scratch.Floats(plan.x.count);
  plan.integers = plan.scratch.Take<int8_t>(plan.x.count * plan.x.width);
  return plan;
}

// Sets plan.scales and plan.integers.
void Quantise(const OnlinePlan& plan, const KernelArgs& args) {
  const int64_t k = plan.x.width;
  float* row = plan.row(args);
  for (int64_t r = 0; r < plan.x.count; ++r) {
    plan.x.Load(args, r, row);
    ScaleColumns(args, plan.smooth, {}, 0, k, plan.smoothing(args), row);
    const float scale = plan.x_scale.For(args, r, LargestMagnitude(row, k) / 127.0f);
    plan.scales(args)[r] = scale;
    for (int64_t i = 0; i < k; ++i) row[i] = scale == 0 ? 0.0f : row[i] / scale;
    StoreIntegers(DataType::kInt8, Rounding::kNearest, row, plan.integers(args), r * k, k);
  }
}

Status MultiplyGroup(const OnlinePlan& plan, const KernelArgs& args, int64_t group, int64_t begin,
                     int64_t end) {
  const int64_t k = plan.x.width, n = plan.n;
  const Dequant dequant = plan.dequant.Part(group, plan.groups);
  float *factors = plan.factors(args), *results = plan.results(args);
  const StoredMatrix x{DataType::kInt8, plan.integers(args), begin * k};
  const StoredMatrix w{DataType::kInt8, args.in[1], group * k * n, plan.transposed};
  return plan.product.Run(args, end - begin, n, x, w, {}, [&](const SumSegment& segment) {
    const int64_t row = begin + segment.row;
    dequant.Apply(args, segment, factors, results);
    const float scale = plan.folded ? 1.0f : plan.scales(args)[row];
    ScaleRow(results, scale, segment.count, results);
    StoreRow(plan.x.dtype, results, args.out[0], row * n + segment.first, segment.count);
  });
}

// Rows after the last group are zeros.
Status RunOnline(const OnlinePlan& plan, const KernelArgs& args) {
  Quantise(plan, args);
  const ThreadCount threads(plan.threads);
  if (plan.rows.given()) ClearOutputs(plan, args);
  return plan.rows.Run(plan, args, MultiplyGroup).status();
}

}  // namespace

void RegisterOnlineMatmulOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanOnline<false>, RunOnline>(
      "QuantMatmulDequant(x, quantized_weight, weight_scale, bias?, x_scale?, x_offset?, "
      "smooth_scale?; x_quant_mode=\"pertoken\", transpose_weight=true) -> y"));
  registry.Add(Define<PlanOnline<true>, RunOnline>(
      "QuantGroupedMatmulDequant(x, quantized_weight, weight_scale, group_list, bias?, x_scale?, "
      "x_offset?, smooth_scale?; x_quant_mode=\"pertoken\", transpose_weight=true) -> y"));
}

}  // namespace npumesh
