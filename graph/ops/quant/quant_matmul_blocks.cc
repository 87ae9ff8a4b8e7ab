// QuantBatchMatmulV4 and QuantBatchMatmulInplaceAdd: products of quantised matrices with scales for
// rows and columns, or for blocks of the inner dimension.
//
// Scales of two matrices are of one of these kinds:
//   columns   x2_scale [1] or [n], packed or plain; x1_scale absent, [1] or [m]
//   groups    integers: x2_scale for every group_size elements of k and each column; x1_scale as
//             above
//   blocks    8-bit floats: float32 scales for blocks of 128 x 128 of x2, and 128 x 128 or 1 x 128
//             of x1
//   MX        8-bit floats: float8_e8m0 scales of both (block_scale.h)
// Partial sums are scaled and added in float32.
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/quant/quant_matmul.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/small_float.h"

namespace npumesh {
namespace {

constexpr int64_t kWideBlock = 128;

// `group_size` packs the extents of a block along k, n and m; 0: not said.
struct GroupSize {
  int64_t k = 0, n = 0, m = 0;
};

GroupSize GroupSizeOf(const OpContext& op) {
  const int64_t packed = op.attr_int("group_size");
  if (packed <= 0) return {};
  return {packed & 0xffff, packed >> 16 & 0xffff, packed >> 32 & 0xffff};
}

void CheckGroup(Check& check, const OpContext& op, bool fits, std::string_view expected) {
  const GroupSize group = GroupSizeOf(op);
  check.Supported(fits, "group_size {} means blocks of {} x {} x {} (m, n, k), expected {}",
                  op.attr_int("group_size"), group.m, group.n, group.k, expected);
}

void ReadOperands(Check& check, const OpContext& op, QuantMatmul& plan) {
  ReadSides(check, op, kQuantProduct, plan);
  const DataType x = plan.left.dtype, w = plan.right.dtype;
  plan.integers = kQuantised.Contains(x) && kQuantised.Contains(w);
  check.Supported(plan.integers || (kEightBitFloats.Contains(x) && kEightBitFloats.Contains(w)),
                  "x1 is {} and x2 {}, expected int8 and int4, or 8-bit floats, on both sides",
                  Name(op.in("x1").dtype), Name(op.in("x2").dtype));
}

// An operand as its scales see it: lines that run along k.
struct ScaledSide {
  std::string_view scale;  // port
  int64_t lines = 0, k = 0;
  bool k_first = false;  // scales have k in front of the lines
};

ScaledSide LeftOf(const QuantMatmul& plan) {
  return {"x1_scale", plan.left.rows, plan.left.columns, plan.left.transposed};
}

ScaledSide RightOf(const QuantMatmul& plan) {
  return {"x2_scale", plan.right.columns, plan.right.rows, !plan.right.transposed};
}

void ReadMxScale(Check& check, const OpContext& op, const ScaledSide& side, MatmulSide& to) {
  const auto& [port, lines, k, k_first] = side;
  to.scale = check.Take(MxScale(op, port, lines, k, k_first, to.batch.elements()));
  const int64_t factors = MxFactors(lines, k);
  to.by_matrix = to.scale.factors.count() > factors ? factors : 0;
}

void ReadMxScales(Check& check, const OpContext& op, QuantMatmul& plan) {
  const GroupSize group = GroupSizeOf(op);
  check.Supported(!plan.integers, "float8_e8m0 scales are for 8-bit floats, x1 is {}",
                  Name(plan.left.dtype));
  CheckGroup(check, op, group.m <= 1 && group.n <= 1 && (group.k == 0 || group.k == kMxBlock),
             "1 x 1 x 32 for float8_e8m0 scales");
  ReadMxScale(check, op, LeftOf(plan), plan.left);
  ReadMxScale(check, op, RightOf(plan), plan.right);
}

// Scales as a matrix, of blocks of `lines` x `depth` elements.
BlockScale MatrixScale(Check& check, const OpContext& op, const ScaledSide& side, int64_t lines,
                       int64_t depth) {
  const int64_t across = CeilDiv(side.lines, lines), along = CeilDiv(side.k, depth);
  const int64_t by_block = side.k_first ? across : 1;
  const BlockScale scale = {.factors = check.Take(Factors::Of(op, side.scale)),
                            .depth = depth,
                            .lines = lines,
                            .by_lines = side.k_first ? 1 : along,
                            .by_pair = 2 * by_block,
                            .by_block = by_block};
  const Shape wanted = side.k_first ? Shape({along, across}) : Shape({across, along});
  check.That(op.in(side.scale).shape == wanted, "{} is {}, expected {} for blocks of {} x {}",
             side.scale, op.in(side.scale), wanted, lines, depth);
  return scale;
}

// Integers: a scale of x2 for every group.k elements of k.
void ReadGroupScales(Check& check, const OpContext& op, const GroupSize& group, QuantMatmul& plan) {
  CheckGroup(check, op, group.k != 0 && group.n <= 1 && group.m <= 1, "1 x 1 x k");
  if (!check.ok()) return;
  plan.integers = false;
  plan.right.scale = MatrixScale(check, op, RightOf(plan), 1, group.k);
  plan.dequant.row_scale = FactorsOf(check, op, "x1_scale", {1, plan.left.rows});
}

void ReadBlockScales(Check& check, const OpContext& op, QuantMatmul& plan) {
  const GroupSize group = GroupSizeOf(op);
  const TensorType& x2_scale = op.in("x2_scale");
  const bool packed = x2_scale.dtype == DataType::kUint64 || x2_scale.dtype == DataType::kInt64;
  check.Supported(
      plan.batch.rank() == 0 && !packed,
      "x2_scale {} is for blocks, which is supported for matrices without batch and scales "
      "of a float type",
      x2_scale);
  if (plan.integers) return ReadGroupScales(check, op, group, plan);
  CheckGroup(check, op,
             (group.k == 0 || group.k == kWideBlock) && (group.n == 0 || group.n == kWideBlock) &&
                 (group.m <= 1 || group.m == kWideBlock),
             "1 or 128 x 128 x 128");
  plan.right.scale = MatrixScale(check, op, RightOf(plan), kWideBlock, kWideBlock);
  const Shape& left = op.in("x1_scale").shape;
  const bool by_row = left.rank() == 2 && left[plan.left.transposed ? 1 : 0] == plan.left.rows;
  plan.left.scale = MatrixScale(check, op, LeftOf(plan), by_row ? 1 : kWideBlock, kWideBlock);
}

// Sets the scales of the plan, which has its operands.
void ReadScales(Check& check, const OpContext& op, QuantMatmul& plan) {
  const int left = SlotIfFed(op, "x1_scale"), right = SlotIfFed(op, "x2_scale");
  check.That(right >= 0, "x2_scale is missing");
  if (!check.ok()) return;
  const TensorType& scale = op.in(right);
  if (scale.dtype == DataType::kFloat8E8M0) {
    check.That(left >= 0, "x2_scale is float8_e8m0, x1_scale is missing");
    if (check.ok()) ReadMxScales(check, op, plan);
    return;
  }
  const int64_t n = plan.right.columns, count = scale.shape.elements();
  // A column of blocks is as long as k is deep, even where there is one block along n.
  const bool one_column = !plan.integers && left >= 0 && scale.shape.rank() == 2 &&
                          op.in(left).shape.rank() == 2 && op.in(left).shape[1] != 1;
  if ((count != 1 && count != n) || one_column) {
    check.That(plan.integers || left >= 0, "x2_scale is {}, expected 1 or {} elements", scale, n);
    if (check.ok()) ReadBlockScales(check, op, plan);
    return;
  }
  plan.dequant.scale = check.Take(Factors::Of(op, "x2_scale"));
  plan.dequant.row_scale = FactorsOf(check, op, "x1_scale", {1, plan.left.rows});
}

// ---- QuantBatchMatmulV4 ----

// The bias of sums of 8-bit floats is added before they are scaled, unless blocks are.
void ReadBiasAndOffset(Check& check, const OpContext& op, QuantMatmul& plan) {
  const bool blocks = plan.right.scale.given();
  const int64_t columns = plan.right.columns;
  ReadBias(check, op, plan.dequant, {columns, columns * plan.batch.elements()});
  check.Supported(plan.integers || !plan.dequant.before.given(),
                  "bias is int32, expected a float type beside x1 {}", op.in("x1"));
  if (kEightBitFloats.Contains(plan.left.dtype) && !blocks) {
    std::swap(plan.dequant.before, plan.dequant.after);
  }
  plan.out_offset = FactorsOf(check, op, "x2_offset", {1, columns});
  check.Supported(!plan.out_offset.given() || (plan.y_dtype == DataType::kInt8 && !blocks),
                  "x2_offset is fed, supported for int8 results only");
}

QuantMatmul PlanV4(const OpContext& op, Check& check) {
  QuantMatmul plan;
  check.NotFed({"x1_offset", "y_scale", "y_offset", "x2_table"});
  check.Only("compute_type", -1);
  ReadOperands(check, op, plan);
  plan.y_dtype = check.Take(op.attr_dtype("dtype"));
  ReadScales(check, op, plan);
  ReadBiasAndOffset(check, op, plan);
  const TypeSet results = plan.integers ? kFloats | DataType::kInt8 | DataType::kInt32 : kFloats;
  check.Supported(results.Contains(plan.y_dtype), "dtype is {}, expected {}", Name(plan.y_dtype),
                  results);
  return Finished(op, std::move(plan));
}

// ---- QuantBatchMatmulInplaceAdd ----

QuantMatmul PlanInplaceAdd(const OpContext& op, Check& check) {
  QuantMatmul plan;
  plan.adds = true;
  plan.y_dtype = DataType::kFloat;
  ReadOperands(check, op, plan);
  ReadScales(check, op, plan);
  check.TypeAndShape("y", DataType::kFloat, plan.y());
  return Finished(op, std::move(plan));
}

}  // namespace

void RegisterBlockMatmulOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanV4, RunQuantMatmul, PackWeights>(
      "QuantBatchMatmulV4(x1, x2, bias?, x1_scale?, x2_scale?, y_scale?, x1_offset?, x2_offset?, "
      "y_offset?, x2_table?; dtype:int, compute_type=-1, transpose_x1=false, transpose_x2=false, "
      "group_size=-1) -> y"));
  registry.Add(Define<PlanInplaceAdd, RunQuantMatmul, PackWeights>(
      "QuantBatchMatmulInplaceAdd(x1, x2, x2_scale, y, x1_scale?; transpose_x1=false, "
      "transpose_x2=false, group_size=0) -> y",
      {.in_place = {{0, 3}}}));
}

}  // namespace npumesh
