#include "graph/ops/fused_rows.h"

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/scaled_matmul.h"

namespace npumesh::fused {
namespace {

bool HasScales(const OpContext& op) {
  return op.schema().type.ends_with("V2");
}

// Scales of the 8-bit operands: of x1 one or one for each row, of x2 one or one for each column.
Status ReadScales(const OpContext& op, RowsPlan& plan) {
  NPUMESH_RETURN_IF_ERROR(ExpectEightBits(op, "x1", "x2"));
  plan.scaled = true;
  plan.row_scale = SlotIfFed(op, "x1_scale");
  NPUMESH_ASSIGN_OR_RETURN(plan.column_scale, Factors::Of(op, "x2_scale"));
  const int64_t rows = plan.row_scale < 0 ? 0 : op.in(plan.row_scale).shape.elements();
  const bool fits = plan.row_scale >= 0 && op.in(plan.row_scale).dtype == DataType::kFloat &&
                    (rows == 1 || rows == plan.local.m) && plan.column_scale.given() &&
                    (plan.column_scale.count() == 1 || plan.column_scale.count() == plan.local.n);
  if (!fits || plan.local.transposed1) {
    return Error(Code::kUnsupported,
                 "{}: {} x1_scale and {} x2_scale for a product of {} x {}{}; expected float32, 1 "
                 "or {} and 1 or {}, and x1 not transposed; scales of blocks are not supported",
                 op.Who(), rows, plan.column_scale.count(), plan.local.m, plan.local.n,
                 plan.local.transposed1 ? " with x1 transposed" : "", plan.local.m, plan.local.n);
  }
  plan.scale_of_rows = rows == plan.local.m && rows > 1;
  plan.y_dtype = DataType::kFloat16;  // 28 says nothing
  if (op.attr_int("y_dtype") != static_cast<int64_t>(DataType::kUndefined)) {
    NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("y_dtype"));
  }
  if (IsRowType(plan.y_dtype)) return Status();
  return Error(Code::kUnsupported, "{}: y_dtype is {}, expected a float type", op.Who(),
               Name(plan.y_dtype));
}

Status CheckSecond(const OpContext& op, bool floats) {
  NPUMESH_RETURN_IF_ERROR(RefuseInputs(op, {"quant_scale"}));
  if (op.attr_bool("is_amax_out")) {
    return Error(Code::kUnsupported, "{}: is_amax_out is not supported", op.Who());
  }
  return floats ? RefuseInputs(op, {"x1_scale", "x2_scale"}) : Status();
}

}  // namespace

Result<RowsPlan> PlanRows(const OpContext& op) {
  RowsPlan plan;
  const bool floats = !HasScales(op) || IsRowType(op.in("x1").dtype);
  if (floats) NPUMESH_RETURN_IF_ERROR(ExpectFloats(op));
  NPUMESH_ASSIGN_OR_RETURN(plan.local, PlanLocal(op));
  NPUMESH_ASSIGN_OR_RETURN(const Ring ring, RingOf(op, "rank_size"));
  plan.ranks = ring.ranks;
  plan.rank = ring.rank;
  plan.y_dtype = plan.local.dtype;
  if (HasScales(op)) NPUMESH_RETURN_IF_ERROR(CheckSecond(op, floats));
  if (!floats) NPUMESH_RETURN_IF_ERROR(ReadScales(op, plan));
  if (op.in("x1").shape.rank() == 2) return plan;
  return Error(Code::kInvalidArgument, "{}: x1 is {}, expected a matrix", op.Who(),
               op.in("x1").ToString());
}

Result<std::unique_ptr<Kernel>> MakeRows(const OpContext& op, const RowsPlan& plan, int64_t m,
                                         DataType y_dtype, bool scale_of_rows) {
  if (!plan.scaled) return MakeProduct(op, plan.local, m, y_dtype);
  ScaledMatmul scaled;
  scaled.x_slot = op.slot("x1");
  scaled.w_slot = op.slot("x2");
  scaled.row_scale_slot = plan.row_scale;
  scaled.scale_of_rows = scale_of_rows;
  scaled.column_scale = plan.column_scale;
  scaled.bias = plan.local.bias;
  scaled.x_dtype = plan.local.dtype;
  scaled.w_dtype = op.in("x2").dtype;
  scaled.y_dtype = y_dtype;
  scaled.transposed_w = plan.local.transposed2;
  scaled.m = m;
  scaled.n = plan.local.n;
  scaled.k = plan.local.k;
  scaled.threads = op.threads();
  return MakeScaledMatmul(scaled);
}

ChunkBlocks::ChunkBlocks(int64_t ranks, int64_t rows, int64_t columns, int64_t stride) {
  for (int64_t r = 0; r < ranks; ++r) {
    counts.push_back(static_cast<uint64_t>(rows * columns));
    displacements.push_back(static_cast<uint64_t>(r * stride * columns));
  }
}

OpSchema WithScales(OpSchema schema, std::string_view type, int64_t y_dtype) {
  schema.type = type;
  for (const std::string_view port : {"x1_scale", "x2_scale", "quant_scale"}) {
    schema.inputs.push_back({port, PortKind::kOptional});
  }
  schema.outputs.push_back({"amax_out"});
  schema.attrs.push_back({"block_size", AttrValue::Int(0)});
  schema.attrs.push_back({"group_size", AttrValue::Int(0)});
  schema.attrs.push_back({"is_amax_out", AttrValue::Bool(false)});
  schema.attrs.push_back({"y_dtype", AttrValue::Int(y_dtype)});
  schema.attrs.push_back({"comm_mode", AttrValue::String("")});
  return schema;
}

void RegisterRowMatmuls(OpRegistry& registry) {
  RegisterGatherMatmuls(registry);
  RegisterScatterMatmuls(registry);
}

}  // namespace npumesh::fused
