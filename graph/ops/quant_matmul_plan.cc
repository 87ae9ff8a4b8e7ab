// QuantBatchMatmulV3 and WeightQuantBatchMatmulV2. Ops reference 5.6.
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/quant_matmul.h"

namespace npumesh {
namespace {

// ---- QuantBatchMatmulV3 ----

Result<QuantMatmul> PlanQuant(const OpContext& op) {
  QuantMatmul plan;
  plan.transposed1 = op.attr_bool("transpose_x1");
  plan.transposed2 = op.attr_bool("transpose_x2");
  plan.x_dtype = StoredType(op.in("x1").dtype);
  plan.w_dtype = StoredType(op.in("x2").dtype);
  for (const DataType dtype : {plan.x_dtype, plan.w_dtype}) {
    if (dtype == DataType::kInt8 || dtype == DataType::kInt4) continue;
    return Error(Code::kUnsupported, "{}: x1 is {} and x2 {}, expected int8 or int4", op.Who(),
                 Name(plan.x_dtype), Name(plan.w_dtype));
  }
  if (op.attr_int("group_size") != 0) {
    return Error(Code::kUnsupported, "{}: group_size {}; block scales are not supported", op.Who(),
                 op.attr_int("group_size"));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.left, SideOf(op, "x1", plan.transposed1));
  NPUMESH_ASSIGN_OR_RETURN(plan.right, SideOf(op, "x2", plan.transposed2));
  NPUMESH_RETURN_IF_ERROR(JoinSides(op, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("dtype"));
  if (!IsRowType(plan.y_dtype) && plan.y_dtype != DataType::kInt8 &&
      plan.y_dtype != DataType::kInt32) {
    return Error(Code::kUnsupported, "{}: dtype is {}, expected a float type, int8 or int32",
                 op.Who(), Name(plan.y_dtype));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.scale, Factors::Of(op, "scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.row_scale, Factors::Of(op, "pertoken_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.out_offset, Factors::Of(op, "offset"));
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  const int64_t columns = plan.right.columns;
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.scale, "scale", columns));
  NPUMESH_RETURN_IF_ERROR(
      CheckFactors(op, plan.dequant.row_scale, "pertoken_scale", plan.left.rows));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.out_offset, "offset", columns));
  NPUMESH_RETURN_IF_ERROR(CheckBias(op, plan));
  return plan;
}

// ---- WeightQuantBatchMatmulV2 ----

Status PlanWeightScale(const OpContext& op, QuantMatmul& plan) {
  WeightScale& scale = plan.weight_scale;
  NPUMESH_ASSIGN_OR_RETURN(scale.scale, Factors::Of(op, "antiquant_scale"));
  NPUMESH_ASSIGN_OR_RETURN(scale.offset, Factors::Of(op, "antiquant_offset"));
  const int64_t k = plan.right.rows;
  const int64_t n = plan.right.columns;
  const int64_t group = op.attr_int("antiquant_group_size");
  const int64_t groups = group > 0 ? (k + group - 1) / group : 1;
  scale.rows = group > 0 ? group : 0;
  if (scale.scale.count() != 1) {
    scale.by_column = plan.transposed2 ? groups : 1;
    scale.by_rows = plan.transposed2 ? 1 : n;
  }
  const bool offset_fits = !scale.offset.given() || scale.offset.count() == scale.scale.count();
  if (group >= 0 && offset_fits && scale.scale.given() &&
      (scale.scale.count() == 1 || scale.scale.count() == groups * n)) {
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "{}: {} antiquant scales and {} offsets with group size {} for weights of {} x {}; "
               "expected 1 or {} x {}",
               op.Who(), scale.scale.count(), scale.offset.count(), group, k, n, groups, n);
}

Result<QuantMatmul> PlanWeightQuant(const OpContext& op) {
  QuantMatmul plan;
  plan.integers = false;
  plan.transposed1 = op.attr_bool("transpose_x");
  plan.transposed2 = op.attr_bool("transpose_weight");
  plan.x_dtype = op.in("x").dtype;
  plan.w_dtype = StoredType(op.in("weight").dtype);
  if (!IsRowType(plan.x_dtype) ||
      (plan.w_dtype != DataType::kInt8 && plan.w_dtype != DataType::kInt4)) {
    return Error(Code::kUnsupported,
                 "{}: x is {} and weight {}, expected a float type and int8 or int4", op.Who(),
                 Name(plan.x_dtype), Name(op.in("weight").dtype));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.left, SideOf(op, "x", plan.transposed1));
  NPUMESH_ASSIGN_OR_RETURN(plan.right, SideOf(op, "weight", plan.transposed2));
  NPUMESH_RETURN_IF_ERROR(JoinSides(op, plan));
  NPUMESH_RETURN_IF_ERROR(PlanWeightScale(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.after, "bias", plan.right.columns));
  NPUMESH_ASSIGN_OR_RETURN(plan.out_scale, Factors::Of(op, "quant_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.out_offset, Factors::Of(op, "quant_offset"));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.out_scale, "quant_scale", plan.right.columns));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.out_offset, "quant_offset", plan.right.columns));
  plan.y_dtype = plan.out_scale.given() ? DataType::kInt8 : plan.x_dtype;
  if (!plan.out_scale.given() && op.attr_int("dtype") >= 0) {
    NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("dtype"));
    if (!IsRowType(plan.y_dtype)) {
      return Error(Code::kUnsupported, "{}: dtype is {}, expected a float type", op.Who(),
                   Name(plan.y_dtype));
    }
  }
  return plan;
}

// ---- both ----

Result<QuantMatmul> PlanOf(const OpContext& op) {
  return op.schema().type == "QuantBatchMatmulV3" ? PlanQuant(op) : PlanWeightQuant(op);
}

Status InferQuantMatmul(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const QuantMatmul plan, PlanOf(op));
  return SetOutput(op, 0, plan.y_dtype, plan.y());
}

Result<std::unique_ptr<Kernel>> MakeQuantMatmul(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(QuantMatmul plan, PlanOf(op));
  return MakeQuantMatmulKernel(op, std::move(plan));
}

}  // namespace

void RegisterQuantMatmulOps(OpRegistry& registry) {
  const AttrValue no = AttrValue::Bool(false);
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add({.schema = {"QuantBatchMatmulV3",
                           {{"x1"},
                            {"x2"},
                            {"scale"},
                            optional("offset"),
                            optional("bias"),
                            optional("pertoken_scale")},
                           {{"y"}},
                           {{"dtype", Required::kInt},
                            {"transpose_x1", no},
                            {"transpose_x2", no},
                            {"group_size", AttrValue::Int(0)}}},
                .infer = InferQuantMatmul,
                .make_kernel = MakeQuantMatmul,
                .weight = WeightTrait{.port = "x2"}});
  registry.Add({.schema = {"WeightQuantBatchMatmulV2",
                           {{"x"},
                            {"weight"},
                            {"antiquant_scale"},
                            optional("antiquant_offset"),
                            optional("quant_scale"),
                            optional("quant_offset"),
                            optional("bias")},
                           {{"y"}},
                           {{"transpose_x", no},
                            {"transpose_weight", no},
                            {"antiquant_group_size", AttrValue::Int(0)},
                            {"dtype", AttrValue::Int(-1)},
                            {"inner_precise", AttrValue::Int(0)}}},
                .infer = InferQuantMatmul,
                .make_kernel = MakeQuantMatmul,
                .weight = WeightTrait{.port = "weight"}});
  RegisterBlockMatmulOps(registry);
  RegisterOnlineMatmulOps(registry);
  RegisterSummedMatmulOps(registry);
}

}  // namespace npumesh
