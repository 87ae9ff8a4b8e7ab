// QuantMatmulDequant and QuantGroupedMatmulDequant: the left operand is quantised on the way.
//
//   x' = x * smooth_scale;  s = x_scale, or max|row of x'| / 127;  q = int8(x' / s)
//   y = (q w + bias) * weight_scale * s
//
// A weight_scale in 64 bits has x_scale multiplied in already.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "graph/ops/quant/quant_matmul.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

struct OnlinePlan : ProductPlan {
  int64_t m = 0, n = 0, k = 0, groups = 1;
  bool transposed = false;
  bool folded = false;  // weight_scale includes x_scale
  DataType dtype = DataType::kUndefined;
  Factors smooth, x_scale;
  Dequant dequant;  // of all groups
  GroupRows rows;   // absent: one group of all rows
  Workspace<float> row, smoothing, scales;
  Workspace<int8_t> integers;
};

template <bool kGrouped>
void ReadOperands(Check& check, const OpContext& op, OnlinePlan& plan) {
  const Shape& w = op.in("quantized_weight").shape;
  const int rank = kGrouped ? 3 : 2;
  const auto [m, k] = check.Matrix("x", kFloats);
  check.Rank("quantized_weight", DataType::kInt8, rank);
  if (!check.ok()) return;
  plan.dtype = op.in("x").dtype;
  plan.transposed = op.attr_bool("transpose_weight");
  plan.m = m;
  plan.k = k;
  plan.n = w[plan.transposed ? rank - 2 : rank - 1];
  plan.groups = kGrouped ? w[0] : 1;
  check.That(w[plan.transposed ? rank - 1 : rank - 2] == k,
             "quantized_weight is int8{}, expected {} with k = {} as x has", w,
             plan.transposed ? "[n,k]" : "[k,n]", k);
}

void ReadScales(Check& check, const OpContext& op, OnlinePlan& plan) {
  const int64_t columns = plan.groups * plan.n;
  plan.smooth = FactorsOf(check, op, "smooth_scale", {1, plan.k});
  plan.x_scale = FactorsOf(check, op, "x_scale", {1, plan.m});
  plan.dequant.scale = FactorsOf(check, op, "weight_scale", {1, columns});
  check.Keep(ReadBias(op, "bias", plan.dequant));
  if (plan.dequant.after.given()) {
    check.Supported(false, "bias is {}, expected int32", op.in("bias"));
  }
  check.Elements("bias", {1, columns});
  check.OneOf("x_quant_mode", {"pertoken", "pertensor"});
  const bool whole = op.attr_string("x_quant_mode") == "pertensor";
  plan.folded = op.in("weight_scale").dtype == DataType::kInt64;
  check.Supported(!whole || plan.x_scale.count() == 1,
                  "x_quant_mode pertensor with {} x_scale, expected one", plan.x_scale.count());
  check.Supported(whole || !plan.folded, "weight_scale is int64, expected x_quant_mode pertensor");
}

template <bool kGrouped>
Result<OnlinePlan> PlanOnline(const OpContext& op) {
  Check check(op);
  OnlinePlan plan;
  ReadOperands<kGrouped>(check, op, plan);
  ReadScales(check, op, plan);
  check.NotFed({"x_offset"});
  if constexpr (kGrouped) {
    plan.rows = check.Take(GroupRows::Of(op, "group_list", false, plan.m));
    check.That(plan.rows.groups() == plan.groups, "group_list has {} entries for {} weights",
               plan.rows.groups(), plan.groups);
  }
  plan.outputs = {{plan.dtype, {plan.m, plan.n}}};
  plan.TakeProduct(op, plan.k, true);
  plan.scratch.Take(plan.k, {&plan.row, &plan.smoothing});
  plan.scales = plan.scratch.Floats(plan.m);
  plan.integers = plan.scratch.Take<int8_t>(plan.m * plan.k);
  return check.Done(std::move(plan));
}

// Sets plan.scales and plan.integers.
void Quantise(const OnlinePlan& plan, const KernelArgs& args) {
  const int64_t k = plan.k;
  const bool shared = plan.smooth.count() == 1;
  float *row = plan.row(args), *smoothing = plan.smoothing(args);
  if (plan.smooth.given()) plan.smooth.Load(args, 0, plan.smooth.count(), smoothing);
  for (int64_t r = 0; r < plan.m; ++r) {
    LoadNumbers(plan.dtype, args.in[0], r * k, k, row);
    float most = 0;
    for (int64_t i = 0; i < k; ++i) {
      if (plan.smooth.given()) row[i] *= smoothing[shared ? 0 : i];
      most = std::max(most, std::fabs(row[i]));
    }
    const float scale = plan.x_scale.given()
                            ? plan.x_scale.At(args, plan.x_scale.count() == 1 ? 0 : r)
                            : most / 127.0f;
    plan.scales(args)[r] = scale;
    for (int64_t i = 0; i < k; ++i) row[i] = scale == 0 ? 0.0f : row[i] / scale;
    StoreIntegers(DataType::kInt8, Rounding::kNearest, row, plan.integers(args), r * k, k);
  }
}

Status Multiply(const OnlinePlan& plan, const KernelArgs& args, int64_t group, int64_t begin,
                int64_t end) {
  const int64_t k = plan.k, n = plan.n;
  const Dequant dequant = plan.dequant.Part(group, plan.groups);
  float *factors = plan.factors(args), *results = plan.results(args);
  const StoredMatrix x{DataType::kInt8, plan.integers(args), begin * k};
  const StoredMatrix w{DataType::kInt8, args.in[1], group * k * n, plan.transposed};
  return plan.product.Run(args, end - begin, n, x, w, {}, [&](const SumSegment& segment) {
    const int64_t row = begin + segment.row;
    dequant.Apply(args, segment, factors, results);
    const float scale = plan.folded ? 1.0f : plan.scales(args)[row];
    for (int64_t i = 0; i < segment.count; ++i) results[i] *= scale;
    StoreRow(plan.dtype, results, args.out[0], row * n + segment.first, segment.count);
  });
}

// Rows after the last group are zeros.
Status RunOnline(const OnlinePlan& plan, const KernelArgs& args) {
  Quantise(plan, args);
  const ThreadCount threads(plan.threads);
  if (!plan.rows.given()) return Multiply(plan, args, 0, 0, plan.m);
  const auto multiply = [&](int64_t group, int64_t begin, int64_t end) {
    return Multiply(plan, args, group, begin, end);
  };
  NPUMESH_ASSIGN_OR_RETURN(const int64_t done, plan.rows.ForEach(args, multiply));
  const TensorType first = {plan.dtype, {done, plan.n}};
  std::memset(static_cast<std::byte*>(args.out[0]) + first.bytes(), 0,
              plan.outputs[0].bytes() - first.bytes());
  return Status();
}

}  // namespace

void RegisterOnlineMatmulOps(OpRegistry& registry) {
  registry.Add(Define<PlanOnline<false>, RunOnline>(
      "QuantMatmulDequant(x, quantized_weight, weight_scale, bias?, x_scale?, x_offset?, "
      "smooth_scale?; x_quant_mode=\"pertoken\", transpose_weight=true) -> y"));
  registry.Add(Define<PlanOnline<true>, RunOnline>(
      "QuantGroupedMatmulDequant(x, quantized_weight, weight_scale, group_list, bias?, x_scale?, "
      "x_offset?, smooth_scale?; x_quant_mode=\"pertoken\", transpose_weight=true) -> y"));
}

}  // namespace npumesh
