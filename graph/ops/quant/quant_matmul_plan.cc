// QuantBatchMatmulV3 and WeightQuantBatchMatmulV2.
#include "graph/ops/quant/family.h"
#include "graph/ops/quant/quant_matmul.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {
namespace {

constexpr TypeSet kResults = kFloats | DataType::kInt8 | DataType::kInt32;

// ---- QuantBatchMatmulV3 ----

Result<QuantMatmul> PlanQuant(const OpContext& op) {
  Check check(op);
  QuantMatmul plan;
  const TypeSet stored = kQuantised | DataType::kInt32;
  for (const std::string_view port : {"x1", "x2"}) {
    check.Supported(stored.Contains(op.in(port).dtype), "{} is {}, expected {}", port,
                    Name(op.in(port).dtype), kQuantised);
  }
  check.Only("group_size", 0);
  ReadSides(check, op, kQuantProduct, plan);
  plan.y_dtype = check.TypeOf("dtype", kResults);
  const int64_t columns = plan.right.columns;
  plan.dequant.scale = FactorsOf(check, op, "scale", {1, columns});
  plan.dequant.row_scale = FactorsOf(check, op, "pertoken_scale", {1, plan.left.rows});
  plan.out_offset = FactorsOf(check, op, "offset", {1, columns});
  ReadMatrixBias(check, op, plan);
  return Finished(check, op, std::move(plan));
}

// ---- WeightQuantBatchMatmulV2 ----

void ReadWeightScale(Check& check, const OpContext& op, QuantMatmul& plan) {
  WeightScale& to = plan.weight_scale;
  to.scale = check.Take(Factors::Of(op, "antiquant_scale"));
  to.offset = check.Take(Factors::Of(op, "antiquant_offset"));
  const int64_t k = plan.right.rows, n = plan.right.columns;
  const int64_t group = op.attr_int("antiquant_group_size");
  const int64_t groups = group > 0 ? CeilDiv(k, group) : 1;
  const int64_t scales = to.scale.count(), offsets = to.offset.count();
  to.rows = group > 0 ? group : 0;
  if (scales != 1) {
    to.by_column = plan.right.transposed ? groups : 1;
    to.by_rows = plan.right.transposed ? 1 : n;
  }
  check.That(group >= 0 && (offsets == 0 || offsets == scales) && to.scale.given() &&
                 (scales == 1 || scales == groups * n),
             "{} antiquant scales and {} offsets with group size {} for weights of {} x {}; "
             "expected 1 or {} x {}",
             scales, offsets, group, k, n, groups, n);
}

Result<QuantMatmul> PlanWeightQuant(const OpContext& op) {
  Check check(op);
  QuantMatmul plan;
  plan.integers = false;
  const DataType x = op.in("x").dtype, weight = op.in("weight").dtype;
  check.Supported(kFloats.Contains(x) && (kQuantised | DataType::kInt32).Contains(weight),
                  "x is {} and weight {}, expected {}, and {}", Name(x), Name(weight), kFloats,
                  kQuantised);
  ReadSides(check, op,
            {.left = "x",
             .right = "weight",
             .left_transposed = "transpose_x",
             .right_transposed = "transpose_weight"},
            plan);
  ReadWeightScale(check, op, plan);
  const int64_t columns = plan.right.columns;
  check.Keep(ReadBias(op, "bias", plan.dequant));
  check.Elements("bias", {1, columns});
  plan.out_scale = FactorsOf(check, op, "quant_scale", {1, columns});
  plan.out_offset = FactorsOf(check, op, "quant_offset", {1, columns});
  plan.y_dtype = plan.out_scale.given() ? DataType::kInt8 : x;
  if (!plan.out_scale.given() && op.attr_int("dtype") >= 0) {
    plan.y_dtype = check.TypeOf("dtype", kFloats);
  }
  return Finished(check, op, std::move(plan));
}

}  // namespace

void RegisterQuantMatmulOps(OpRegistry& registry) {
  registry.Add(Define<PlanQuant, RunQuantMatmul, PackWeights>(
      "QuantBatchMatmulV3(x1, x2, scale, offset?, bias?, pertoken_scale?; dtype:int, "
      "transpose_x1=false, transpose_x2=false, group_size=0) -> y",
      {.weight = WeightTrait{.port = "x2"}}));
  registry.Add(Define<PlanWeightQuant, RunQuantMatmul, PackWeights>(
      "WeightQuantBatchMatmulV2(x, weight, antiquant_scale, antiquant_offset?, quant_scale?, "
      "quant_offset?, bias?; transpose_x=false, transpose_weight=false, antiquant_group_size=0, "
      "dtype=-1, inner_precise=0) -> y",
      {.weight = WeightTrait{.port = "weight"}}));
  RegisterBlockMatmulOps(registry);
  RegisterOnlineMatmulOps(registry);
  RegisterSummedMatmulOps(registry);
}

}  // namespace npumesh
