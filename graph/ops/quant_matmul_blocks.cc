// QuantBatchMatmulV4 and QuantBatchMatmulInplaceAdd: products of quantised matrices with scales for
// rows and columns, or for blocks of the inner dimension. Ops reference 5.19.
//
// Scales of two matrices are of one of these kinds:
//   columns   x2_scale [1] or [n], packed or plain; x1_scale absent, [1] or [m]
//   groups    integers: x2_scale for every group_size elements of k and each column; x1_scale as
//             above
//   blocks    8-bit floats: float32 scales for blocks of 128 x 128 of x2, and 128 x 128 or 1 x 128
//             of x1
//   MX        8-bit floats: float8_e8m0 scales of both (block_scale.h)
// Partial sums are scaled and added in float32.
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/quant_matmul.h"
#include "graph/ops/small_float.h"

namespace npumesh {
namespace {

constexpr int64_t kWideBlock = 128;

int64_t Ceil(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// `group_size` packs the extents of a block along k, n and m; 0: not said.
struct GroupSize {
  int64_t k = 0;
  int64_t n = 0;
  int64_t m = 0;
};

GroupSize GroupSizeOf(const OpContext& op) {
  const int64_t packed = op.attr_int("group_size");
  if (packed <= 0) return {};
  return {packed & 0xffff, packed >> 16 & 0xffff, packed >> 32 & 0xffff};
}

Status RefuseGroup(const OpContext& op, std::string_view expected) {
  const GroupSize group = GroupSizeOf(op);
  return Error(Code::kUnsupported,
               "{}: group_size {} means blocks of {} x {} x {} (m, n, k), expected {}", op.Who(),
               op.attr_int("group_size"), group.m, group.n, group.k, expected);
}

// Reads the types of the operands. Error: kUnsupported.
Status ReadOperands(const OpContext& op, QuantMatmul& plan) {
  plan.transposed1 = op.attr_bool("transpose_x1");
  plan.transposed2 = op.attr_bool("transpose_x2");
  plan.x_dtype = StoredType(op.in("x1").dtype);
  plan.w_dtype = StoredType(op.in("x2").dtype);
  const auto integer = [](DataType dtype) {
    return dtype == DataType::kInt8 || dtype == DataType::kInt4;
  };
  plan.integers = integer(plan.x_dtype) && integer(plan.w_dtype);
  if (!plan.integers && !(IsFloat8(plan.x_dtype) && IsFloat8(plan.w_dtype))) {
    return Error(Code::kUnsupported,
                 "{}: x1 is {} and x2 {}, expected int8 and int4, or 8-bit floats, on both sides",
                 op.Who(), Name(op.in("x1").dtype), Name(op.in("x2").dtype));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.left, SideOf(op, "x1", plan.transposed1));
  NPUMESH_ASSIGN_OR_RETURN(plan.right, SideOf(op, "x2", plan.transposed2));
  return JoinSides(op, plan);
}

int64_t Matrices(const MatmulSide& side) {
  return ElementsBetween(side.batch, 0, side.batch.rank());
}

Status PlanMx(const OpContext& op, QuantMatmul& plan) {
  const GroupSize group = GroupSizeOf(op);
  if (plan.integers) {
    return Error(Code::kUnsupported, "{}: float8_e8m0 scales are for 8-bit floats, x1 is {}",
                 op.Who(), Name(plan.x_dtype));
  }
  if (group.m > 1 || group.n > 1 || (group.k != 0 && group.k != kMxBlock)) {
    return RefuseGroup(op, "1 x 1 x 32 for float8_e8m0 scales");
  }
  const int64_t m = plan.left.rows, n = plan.right.columns, k = plan.left.columns;
  const int64_t lefts = Matrices(plan.left), rights = Matrices(plan.right);
  NPUMESH_ASSIGN_OR_RETURN(plan.left_scale, MxScale(op, "x1_scale", m, k, plan.transposed1, lefts));
  NPUMESH_ASSIGN_OR_RETURN(plan.right_scale,
                           MxScale(op, "x2_scale", n, k, !plan.transposed2, rights));
  const int64_t left = MxFactors(m, k), right = MxFactors(n, k);
  plan.left_factors = plan.left_scale.factors.count() > left ? left : 0;
  plan.right_factors = plan.right_scale.factors.count() > right ? right : 0;
  return Status();
}

// Scales as a matrix of blocks, the lines of the operand in front unless `k_first`.
Result<BlockScale> MatrixScale(const OpContext& op, std::string_view port, int64_t lines, int64_t k,
                               int64_t line_extent, int64_t depth, bool k_first) {
  BlockScale scale;
  NPUMESH_ASSIGN_OR_RETURN(scale.factors, Factors::Of(op, port));
  const int64_t across = Ceil(lines, line_extent), along = Ceil(k, depth);
  scale.lines = line_extent;
  scale.depth = depth;
  scale.by_lines = k_first ? 1 : along;
  scale.by_block = k_first ? across : 1;
  scale.by_pair = 2 * scale.by_block;
  const Shape& shape = op.in(port).shape;
  const Shape wanted = k_first ? Shape({along, across}) : Shape({across, along});
  if (shape == wanted) return scale;
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected {} for blocks of {} x {}",
               op.Who(), port, op.in(port).ToString(), wanted.ToString(), line_extent, depth);
}

Status PlanBlocks(const OpContext& op, QuantMatmul& plan) {
  const GroupSize group = GroupSizeOf(op);
  const int64_t m = plan.left.rows, n = plan.right.columns, k = plan.left.columns;
  const bool packed =
      op.in("x2_scale").dtype == DataType::kUint64 || op.in("x2_scale").dtype == DataType::kInt64;
  if (plan.batch.rank() > 0 || packed) {
    return Error(Code::kUnsupported,
                 "{}: x2_scale {} is for blocks, which is supported for matrices without batch and "
                 "scales of a float type",
                 op.Who(), op.in("x2_scale").ToString());
  }
  if (plan.integers) {
    if (group.k == 0 || group.n > 1 || group.m > 1) return RefuseGroup(op, "1 x 1 x k");
    plan.integers = false;
    NPUMESH_ASSIGN_OR_RETURN(plan.right_scale,
                             MatrixScale(op, "x2_scale", n, k, 1, group.k, !plan.transposed2));
    NPUMESH_ASSIGN_OR_RETURN(plan.dequant.row_scale, Factors::Of(op, "x1_scale"));
    return CheckFactors(op, plan.dequant.row_scale, "x1_scale", m);
  }
  if ((group.k != 0 && group.k != kWideBlock) || (group.n != 0 && group.n != kWideBlock) ||
      (group.m > 1 && group.m != kWideBlock)) {
    return RefuseGroup(op, "1 or 128 x 128 x 128");
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.right_scale, MatrixScale(op, "x2_scale", n, k, kWideBlock,
                                                         kWideBlock, !plan.transposed2));
  const Shape& left = op.in("x1_scale").shape;
  const bool by_row = left.rank() == 2 && left[plan.transposed1 ? 1 : 0] == m;
  NPUMESH_ASSIGN_OR_RETURN(
      plan.left_scale,
      MatrixScale(op, "x1_scale", m, k, by_row ? 1 : kWideBlock, kWideBlock, plan.transposed1));
  return Status();
}

// Sets the scales of the plan, which has its operands.
Status PlanScales(const OpContext& op, QuantMatmul& plan) {
  const int64_t n = plan.right.columns;
  const int left = SlotIfFed(op, "x1_scale"), right = SlotIfFed(op, "x2_scale");
  if (right < 0) return Error(Code::kInvalidArgument, "{}: \"x2_scale\" is missing", op.Who());
  if (op.in(right).dtype == DataType::kFloat8E8M0) {
    if (left >= 0) return PlanMx(op, plan);
    return Error(Code::kInvalidArgument, "{}: x2_scale is float8_e8m0, \"x1_scale\" is missing",
                 op.Who());
  }
  const int64_t count = op.in(right).shape.elements();
  const bool blocks = count != 1 && count != n;
  // A column of blocks is as long as k is deep, even where there is one block along n.
  const bool one_column = !plan.integers && left >= 0 && op.in(right).shape.rank() == 2 &&
                          op.in(left).shape.rank() == 2 && op.in(left).shape[1] != 1;
  if (blocks || one_column) {
    if (plan.integers || left >= 0) return PlanBlocks(op, plan);
    return Error(Code::kInvalidArgument, "{}: x2_scale is {}, expected 1 or {} elements", op.Who(),
                 op.in(right).ToString(), n);
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.scale, Factors::Of(op, "x2_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.row_scale, Factors::Of(op, "x1_scale"));
  return CheckFactors(op, plan.dequant.row_scale, "x1_scale", plan.left.rows);
}

// ---- QuantBatchMatmulV4 ----

Status RefuseWhatIsNot(const OpContext& op) {
  for (const std::string_view port : {"x1_offset", "y_scale", "y_offset", "x2_table"}) {
    if (SlotIfFed(op, port) < 0) continue;
    return Error(Code::kUnsupported, "{}: \"{}\" is fed, which is not supported", op.Who(), port);
  }
  if (op.attr_int("compute_type") == -1) return Status();
  return Error(Code::kUnsupported, "{}: compute_type is {}, expected -1", op.Who(),
               op.attr_int("compute_type"));
}

// The bias of sums of 8-bit floats is added before they are scaled, unless blocks are.
Status PlanBias(const OpContext& op, QuantMatmul& plan) {
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  const bool blocks = plan.right_scale.given();
  if (plan.dequant.before.given() && !plan.integers) {
    return Error(Code::kUnsupported, "{}: bias is int32, expected a float type beside x1 {}",
                 op.Who(), op.in("x1").ToString());
  }
  if (IsFloat8(plan.x_dtype) && !blocks) std::swap(plan.dequant.before, plan.dequant.after);
  return CheckBias(op, plan);
}

Status PlanOffset(const OpContext& op, QuantMatmul& plan) {
  NPUMESH_ASSIGN_OR_RETURN(plan.out_offset, Factors::Of(op, "x2_offset"));
  if (!plan.out_offset.given()) return Status();
  if (plan.y_dtype != DataType::kInt8 || plan.right_scale.given()) {
    return Error(Code::kUnsupported, "{}: \"x2_offset\" is fed, supported for int8 results only",
                 op.Who());
  }
  return CheckFactors(op, plan.out_offset, "x2_offset", plan.right.columns);
}

Result<QuantMatmul> PlanV4(const OpContext& op) {
  QuantMatmul plan;
  NPUMESH_RETURN_IF_ERROR(RefuseWhatIsNot(op));
  NPUMESH_RETURN_IF_ERROR(ReadOperands(op, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("dtype"));
  NPUMESH_RETURN_IF_ERROR(PlanScales(op, plan));
  NPUMESH_RETURN_IF_ERROR(PlanBias(op, plan));
  NPUMESH_RETURN_IF_ERROR(PlanOffset(op, plan));
  const bool integer = plan.y_dtype == DataType::kInt8 || plan.y_dtype == DataType::kInt32;
  if (IsRowType(plan.y_dtype) || (integer && plan.integers)) return plan;
  return Error(Code::kUnsupported, "{}: dtype is {}, expected a float type{}", op.Who(),
               Name(plan.y_dtype), plan.integers ? ", int8 or int32" : "");
}

Status InferV4(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const QuantMatmul plan, PlanV4(op));
  return SetOutput(op, 0, plan.y_dtype, plan.y());
}

Result<std::unique_ptr<Kernel>> MakeV4(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(QuantMatmul plan, PlanV4(op));
  return MakeQuantMatmulKernel(op, std::move(plan));
}

// ---- QuantBatchMatmulInplaceAdd ----

Result<QuantMatmul> PlanInplaceAdd(const OpContext& op) {
  QuantMatmul plan;
  plan.adds = true;
  plan.y_dtype = DataType::kFloat;
  NPUMESH_RETURN_IF_ERROR(ReadOperands(op, plan));
  NPUMESH_RETURN_IF_ERROR(PlanScales(op, plan));
  const TensorType& y = op.in("y");
  if (y == TensorType{DataType::kFloat, plan.y()}) return plan;
  return Error(Code::kInvalidArgument, "{}: \"y\" is {}, expected float32{}", op.Who(),
               y.ToString(), plan.y().ToString());
}

Status InferInplaceAdd(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const QuantMatmul plan, PlanInplaceAdd(op));
  return SetOutput(op, 0, plan.y_dtype, plan.y());
}

Result<std::unique_ptr<Kernel>> MakeInplaceAdd(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(QuantMatmul plan, PlanInplaceAdd(op));
  return MakeQuantMatmulKernel(op, std::move(plan));
}

}  // namespace

void RegisterBlockMatmulOps(OpRegistry& registry) {
  const AttrValue no = AttrValue::Bool(false);
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add({.schema = {"QuantBatchMatmulV4",
                           {{"x1"},
                            {"x2"},
                            optional("bias"),
                            optional("x1_scale"),
                            optional("x2_scale"),
                            optional("y_scale"),
                            optional("x1_offset"),
                            optional("x2_offset"),
                            optional("y_offset"),
                            optional("x2_table")},
                           {{"y"}},
                           {{"dtype", Required::kInt},
                            {"compute_type", AttrValue::Int(-1)},
                            {"transpose_x1", no},
                            {"transpose_x2", no},
                            {"group_size", AttrValue::Int(-1)}}},
                .infer = InferV4,
                .make_kernel = MakeV4});
  registry.Add(
      {.schema = {"QuantBatchMatmulInplaceAdd",
                  {{"x1"}, {"x2"}, {"x2_scale"}, {"y"}, optional("x1_scale")},
                  {{"y"}},
                  {{"transpose_x1", no}, {"transpose_x2", no}, {"group_size", AttrValue::Int(0)}}},
       .infer = InferInplaceAdd,
       .make_kernel = MakeInplaceAdd,
       .in_place = {{0, 3}}});
}

}  // namespace npumesh
