// QuantBatchMatmulV3 and WeightQuantBatchMatmulV2.
#include "graph/ops/core/op_registry.h"
#include "graph/ops/quant/quant_matmul.h"

namespace npumesh {
namespace {

constexpr TypeSet kResults = kFloats | DataType::kInt8 | DataType::kInt32;

// ---- QuantBatchMatmulV3 ----

QuantMatmul PlanQuant(const OpContext& op, Check& check) {
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
  check.Type("scale", TypeSet(DataType::kBfloat16) | DataType::kFloat | DataType::kInt64 |
                          DataType::kUint64 | DataType::kFloat8E8M0);
  check.Type("pertoken_scale", TypeSet(DataType::kFloat) | DataType::kFloat8E8M0);
  plan.dequant.scale = FactorsOf(check, op, "scale", {1, columns});
  plan.dequant.row_scale = FactorsOf(check, op, "pertoken_scale", {1, plan.left.rows});
  plan.out_offset = FactorsOf(check, op, "offset", {1, columns});
  ReadBias(check, op, plan.dequant, {columns, columns * plan.batch.elements()});
  return Finished(op, std::move(plan));
}

// ---- WeightQuantBatchMatmulV2 ----

QuantMatmul PlanWeightQuant(const OpContext& op, Check& check) {
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
  const int64_t columns = plan.right.columns;
  plan.weight_scale = WeightScaleOf(check, op, plan.right.rows, columns, plan.right.transposed);
  ReadBias(check, op, plan.dequant, {1, columns});
  plan.out_scale = FactorsOf(check, op, "quant_scale", {1, columns});
  plan.out_offset = FactorsOf(check, op, "quant_offset", {1, columns});
  plan.y_dtype = plan.out_scale.given() ? DataType::kInt8 : x;
  if (!plan.out_scale.given() && op.attr_int("dtype") >= 0) {
    plan.y_dtype = check.TypeOf("dtype", kFloats);
  }
  return Finished(op, std::move(plan));
}

}  // namespace

void RegisterQuantMatmulOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanQuant, RunQuantMatmul, PackWeights>(
      "QuantBatchMatmulV3(x1, x2, scale, offset?, bias?, pertoken_scale?; dtype:int, "
      "transpose_x1=false, transpose_x2=false, group_size=0) -> y",
      {.weight = WeightTrait{.port = "x2"}}));
  registry.Add(Define<PlanWeightQuant, RunQuantMatmul, PackWeights>(
      "WeightQuantBatchMatmulV2(x, weight, antiquant_scale, antiquant_offset?, quant_scale?, "
      "quant_offset?, bias?; transpose_x=false, transpose_weight=false, antiquant_group_size=0, "
      "dtype=-1, inner_precise=0) -> y",
      {.weight = WeightTrait{.port = "weight"}}));
}

}  // namespace npumesh
