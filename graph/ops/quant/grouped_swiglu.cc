// GroupedMatmulSwigluQuantV2: products of int8 rows with the weights of their experts, gated and
// quantised again.
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/product_plan.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/activations.h"
#include "graph/ops/toolbox/values/quantised_row.h"

namespace npumesh {
namespace {

struct GroupedSwigluPlan : ProductPlan {
  GroupedRows rows;
  std::vector<int> weights;     // slots: one for all experts, or one each
  std::vector<Factors> scales;  // of the columns, by expert
  Factors row_scale;
  Workspace<float> products;

  bool stacked() const { return weights.size() == 1; }
};

// One tensor with the scales of all experts, or one each.
void ReadScales(Check& check, const OpContext& op, GroupedSwigluPlan& plan) {
  const int64_t experts = plan.rows.experts, given = op.count("weight_scale");
  check.That(given == 1 || given == experts, "{} weight_scale, expected 1 or {}", given, experts);
  if (!check.ok()) return;
  const int64_t parts = given == 1 ? experts : 1;
  for (int64_t e = 0; e < experts; ++e) {
    const int slot = op.slot("weight_scale") + (given == 1 ? 0 : static_cast<int>(e));
    const Factors scale = check.Take(Factors::OfSlot(op, slot));
    check.That(scale.count() == parts * plan.rows.n,
               "weight_scale is {}, expected {} elements for {} experts", op.in(slot),
               parts * plan.rows.n, parts);
    plan.scales.push_back(check.ok() && parts > 1 ? scale.Part(e, parts) : scale);
  }
}

GroupedSwigluPlan PlanGroupedSwiglu(const OpContext& op, Check& check) {
  GroupedSwigluPlan plan;
  for (const std::string_view name : {"dequant_mode", "quant_mode"}) check.Only(name, 0);
  check.NotFed({"weight_assist_matrix", "bias", "smooth_scale"});
  for (int i = 0; i < op.count("weight"); ++i) plan.weights.push_back(op.slot("weight") + i);
  check.That(!plan.weights.empty(), "no weight");
  if (!check.ok()) return plan;
  plan.rows = GroupedRowsOf(check, op, plan.weights[0], plan.stacked(), "transpose_weight");
  const GroupedRows& rows = plan.rows;
  check.Supported(rows.x_dtype == DataType::kInt8 && rows.w_dtype == DataType::kInt8,
                  "x is {} and the weights {}, expected int8", op.in(0), op.in(plan.weights[0]));
  check.That(plan.stacked() || plan.weights.size() == static_cast<size_t>(rows.experts),
             "{} weights, expected 1 or {}", plan.weights.size(), rows.experts);
  for (const int slot : plan.weights) {
    check.That(op.in(slot) == op.in(plan.weights[0]), "weights are {} and {}, expected equal ones",
               op.in(plan.weights[0]), op.in(slot));
  }
  check.That(rows.n % 2 == 0, "weight is {}, expected an even number of columns",
             op.in(plan.weights[0]));
  plan.row_scale = check.Take(Factors::Of(op, "x_scale"));
  check.Elements("x_scale", {rows.m});
  ReadScales(check, op, plan);
  plan.outputs = {{DataType::kInt8, {rows.m, rows.n / 2}}, {DataType::kFloat, {rows.m}}};
  plan.TakeProduct(op, rows.k, true);
  plan.products = plan.scratch.Floats(rows.m * rows.n);
  return plan;
}

// The dequantised products of the rows [begin, end) of an expert.
Status Multiply(const GroupedSwigluPlan& plan, const KernelArgs& args, int64_t expert,
                int64_t begin, int64_t end) {
  const GroupedRows& rows = plan.rows;
  const auto e = static_cast<size_t>(expert);
  Dequant dequant;
  dequant.scale = plan.scales[e];
  dequant.row_scale = plan.row_scale;
  const StoredMatrix x = {DataType::kInt8, args.in[0], begin * rows.k};
  const StoredMatrix w = {DataType::kInt8, args.in[plan.weights[plan.stacked() ? 0 : e]],
                          plan.stacked() ? expert * rows.k * rows.n : 0, rows.transposed};
  return plan.product.Run(args, end - begin, rows.n, x, w, {}, [&](SumSegment segment) {
    segment.row += begin;
    dequant.Apply(args, segment, plan.factors(args),
                  plan.products(args) + segment.row * rows.n + segment.first);
  });
}

// Rows after the last group are unspecified; they are zero here.
Status RunGroupedSwiglu(const GroupedSwigluPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  const int64_t n = plan.rows.n, half = n / 2;
  ClearOutputs(plan, args);
  NPUMESH_ASSIGN_OR_RETURN(const int64_t done, plan.rows.list.Run(plan, args, Multiply));
  auto* y = static_cast<int8_t*>(args.out[0]);
  auto* scales = static_cast<float*>(args.out[1]);
  for (int64_t row = 0; row < done; ++row) {
    float* c = plan.products(args) + row * n;
    for (int64_t i = 0; i < half; ++i) {
      const double gate = Silu(static_cast<double>(c[i]));
      c[i] = static_cast<float>(gate) * c[half + i];
    }
    scales[row] = QuantiseToInt8(c, half, y + row * half);
  }
  return Status();
}

}  // namespace

void RegisterGroupedSwigluOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanGroupedSwiglu, RunGroupedSwiglu>(
      "GroupedMatmulSwigluQuantV2(x, x_scale, group_list, weight..., weight_scale..., "
      "weight_assist_matrix..., bias?, smooth_scale?; dequant_mode=0, dequant_dtype=0, "
      "quant_mode=0, quant_dtype=1, transpose_weight=false, group_list_type=0, "
      "tuning_config=[0]) -> y, y_scale"));
}

}  // namespace npumesh
