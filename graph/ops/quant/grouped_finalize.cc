// GroupedMatmulFinalizeRouting: products of int8 rows with the weights of their experts, weighted
// and added to the rows of their tokens.
#include <string>

#include "graph/ops/quant/family.h"
#include "graph/ops/toolbox/product/product_plan.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

struct FinalizePlan : ProductPlan {
  GroupedRows rows;
  Dequant dequant;  // of all experts
  Factors logit;
  Integers index;    // the row of y of each row of x
  InputRows shared;  // what is in y before
  int64_t shared_first = 0;
  float shared_weight = 1;
  int64_t y_rows = 0;
  Workspace<float> row;
};

void ReadFactors(Check& check, const OpContext& op, FinalizePlan& plan) {
  const GroupedRows& rows = plan.rows;
  const int64_t columns = rows.experts * rows.n;
  plan.dequant.scale = check.Take(Factors::Of(op, "scale"));
  check.That(plan.dequant.scale.count() == columns, "scale has {} elements, expected {}",
             plan.dequant.scale.count(), columns);
  plan.dequant.after = FactorsOf(check, op, "bias", {columns});
  plan.dequant.row_scale = FactorsOf(check, op, "pertoken_scale", {rows.m});
  plan.logit = FactorsOf(check, op, "logit", {rows.m});
}

void ReadShared(Check& check, const OpContext& op, FinalizePlan& plan) {
  plan.shared_first = op.attr_int("shared_input_offset");
  plan.shared_weight = op.attr_float("shared_input_weight");
  if (SlotIfFed(op, "shared_input") < 0) return;
  check.Rank("shared_input", kFloats, 2);
  plan.shared = InputRows::Of(check, op, "shared_input");
  check.That(plan.shared.width == plan.rows.n && plan.shared_first >= 0 &&
                 plan.shared_first <= plan.y_rows - plan.shared.count,
             "shared_input is {} from row {}, expected {} columns and a place in {} rows",
             op.in("shared_input"), plan.shared_first, plan.rows.n, plan.y_rows);
}

FinalizePlan PlanFinalize(const OpContext& op, Check& check) {
  FinalizePlan plan;
  check.Supported(!op.attr_bool("transpose_x"), "transpose_x is true, expected false");
  check.Only("dtype", 0);
  check.NotFed({"offset"});
  plan.rows = GroupedRowsOf(check, op, op.slot("w"), true, "transpose_w");
  const GroupedRows& rows = plan.rows;
  plan.y_rows = op.attr_int("output_bs") > 0 ? op.attr_int("output_bs") : rows.m;
  ReadFactors(check, op, plan);
  plan.index = Integers::Of(op, "row_index");
  check.That(plan.index.given(), "row_index is missing");
  check.Type("row_index", kIndices);
  check.Elements("row_index", {rows.m});
  ReadShared(check, op, plan);
  plan.outputs = {{DataType::kFloat, {plan.y_rows, rows.n}}};
  plan.TakeProduct(op, rows.k, true);
  plan.row = plan.scratch.Floats(rows.n);
  return plan;
}

Status CheckIndex(const FinalizePlan& plan, const KernelArgs& args) {
  for (int64_t row = 0; row < plan.rows.m; ++row) {
    const int64_t target = plan.index.At(args, row);
    if (target >= 0 && target < plan.y_rows) continue;
    return Error(Code::kInvalidArgument, "{}: row_index holds {} for row {}, expected 0 to {}",
                 plan.who, target, row, plan.y_rows - 1);
  }
  return Status();
}

// y = the shared rows with their weight, zeros elsewhere.
void StoreShared(const FinalizePlan& plan, const KernelArgs& args) {
  const int64_t n = plan.rows.n;
  auto* y = static_cast<float*>(args.out[0]);
  ClearOutput(plan, args, 0);
  for (int64_t r = 0; r < plan.shared.count; ++r) {
    plan.shared.Load(args, r, plan.row(args));
    ScaleRow(plan.row(args), plan.shared_weight, n, y + (plan.shared_first + r) * n);
  }
}

// Adds the products of the rows [begin, end) of an expert to the rows of their tokens.
Status AddExpert(const FinalizePlan& plan, const KernelArgs& args, int64_t expert, int64_t begin,
                 int64_t end) {
  const GroupedRows& rows = plan.rows;
  const Dequant dequant = plan.dequant.Part(expert, rows.experts);
  float *factors = plan.factors(args), *results = plan.results(args);
  const StoredMatrix x = {DataType::kInt8, args.in[0], begin * rows.k};
  const StoredMatrix w = {DataType::kInt8, args.in[1], expert * rows.k * rows.n, rows.transposed};
  return plan.product.Run(args, end - begin, rows.n, x, w, {}, [&](SumSegment segment) {
    segment.row += begin;
    dequant.Apply(args, segment, factors, results);
    const float weight = plan.logit.For(args, segment.row, 1.0f);
    float* to = static_cast<float*>(args.out[0]) + plan.index.At(args, segment.row) * rows.n +
                segment.first;
    for (int64_t i = 0; i < segment.count; ++i) to[i] += results[i] * weight;
  });
}

// Rows are added in their order, after the shared ones.
Status RunFinalize(const FinalizePlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  NPUMESH_RETURN_IF_ERROR(CheckIndex(plan, args));
  StoreShared(plan, args);
  return plan.rows.list.Run(plan, args, AddExpert).status();
}

}  // namespace

void RegisterGroupedFinalizeOps(OpRegistry& registry) {
  registry.Add(Define<PlanFinalize, RunFinalize>(
      "GroupedMatmulFinalizeRouting(x, w, scale?, bias?, pertoken_scale?, group_list?, "
      "shared_input?, logit?, row_index?, offset?; dtype=0, shared_input_weight=1.0, "
      "shared_input_offset=0, transpose_x=false, transpose_w=false, output_bs=0, "
      "group_list_type=1, tuning_config=[]) -> y"));
}

}  // namespace npumesh
