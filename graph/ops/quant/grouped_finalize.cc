// GroupedMatmulFinalizeRouting: products of quantised rows with the weights of their experts,
// weighted and added to the rows of their tokens.
//
// x and w are of one of these kinds:
//   int8, 8-bit floats   scale [E, N] of float32 or bfloat16; pertoken_scale [M]
//   MX                   8-bit floats or float4; float8_e8m0 scales of both (block_scale.h)
//   int8 with int4       scale [E, G, N], packed, for each of G groups of k; offset [E, G, N]:
//                        y = ((x - 8) w scale + bias + x offset) pertoken_scale, where bias is
//                        meant to hold 8 w scale, so x w (scale + offset) remains
#include <algorithm>
#include <string>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/product_plan.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// What weights of 4 bits ask for beside their scales.
struct Shift {
  int64_t groups = 0;               // of k; 0: no such weights
  Factors offset;                   // [experts, groups, n]
  Workspace<float> eights, column;  // k times -8; what they give for each column of an expert
  Workspace<float> line;            // elements of a row of x
};

struct FinalizePlan : ProductPlan {
  GroupedRows rows;
  BlockScale x_scale, w_scale;  // of blocks along k
  int64_t w_factors = 0;        // of w_scale, from expert to expert
  Dequant dequant;              // of all experts
  Shift shift;
  Factors logit;
  Integers index;    // the row of y of each row of x
  InputRows shared;  // what is in y before
  int64_t shared_first = 0;
  float shared_weight = 1;
  int64_t y_rows = 0;
  Workspace<float> row;

  bool integers() const {
    return rows.x_dtype == DataType::kInt8 && rows.w_dtype == DataType::kInt8;
  }
};

void CheckTypes(Check& check, const FinalizePlan& plan) {
  const DataType x = plan.rows.x_dtype, w = plan.rows.w_dtype;
  const bool four_bits = x == DataType::kInt8 && w == DataType::kInt4;
  const bool floats = (kEightBitFloats.Contains(x) && kEightBitFloats.Contains(w)) ||
                      (kFloat4.Contains(x) && kFloat4.Contains(w));
  check.Supported(plan.integers() || four_bits || floats,
                  "x is {} and w {}, expected int8 with int8 or int4, 8-bit floats or float4",
                  Name(x), Name(w));
}

void ReadMxScales(Check& check, const OpContext& op, FinalizePlan& plan) {
  const GroupedRows& rows = plan.rows;
  check.That(SlotIfFed(op, "pertoken_scale") >= 0,
             "scale is float8_e8m0, pertoken_scale is missing");
  if (!check.ok()) return;
  plan.x_scale = check.Take(MxScale(op, "pertoken_scale", rows.m, rows.k, false, 1));
  plan.w_scale = check.Take(MxScale(op, "scale", rows.n, rows.k, !rows.transposed, rows.experts));
  const int64_t factors = MxFactors(rows.n, rows.k);
  plan.w_factors = plan.w_scale.factors.count() > factors ? factors : 0;
}

// Scales for each group of k, and what comes with them.
void ReadGroupScales(Check& check, const OpContext& op, FinalizePlan& plan) {
  const GroupedRows& rows = plan.rows;
  const Shape& scale = op.in("scale").shape;
  check.Supported(!rows.transposed, "transpose_w is true, expected false for weights of int4");
  const int64_t groups = scale.rank() == 3 ? scale[1] : 1;
  check.That(groups > 0 && rows.k % groups == 0 && scale.rank() >= 2 && scale[0] == rows.experts &&
                 scale.dims().back() == rows.n,
             "scale is {}, expected [{},G,{}] where {} is a multiple of G", op.in("scale"),
             rows.experts, rows.n, rows.k);
  if (!check.ok()) return;
  plan.w_factors = groups * rows.n;
  plan.w_scale = {.factors = check.Take(Factors::Of(op, "scale")),
                  .depth = std::max<int64_t>(rows.k / groups, 1),
                  .by_lines = 1,
                  .by_pair = 2 * rows.n,
                  .by_block = rows.n};
  plan.shift.groups = groups;
  plan.shift.offset = FactorsOf(check, op, "offset", {rows.experts * plan.w_factors});
  std::swap(plan.dequant.before, plan.dequant.after);
}

void ReadFactors(Check& check, const OpContext& op, FinalizePlan& plan) {
  const GroupedRows& rows = plan.rows;
  const int64_t columns = rows.experts * rows.n;
  plan.dequant.after = FactorsOf(check, op, "bias", {columns});
  plan.logit = FactorsOf(check, op, "logit", {rows.m});
  check.That(SlotIfFed(op, "scale") >= 0, "scale is missing");
  if (rows.w_dtype != DataType::kInt4) check.NotFed({"offset"});
  if (!check.ok()) return;
  const DataType scale = op.in("scale").dtype;
  const bool blocks = scale == DataType::kFloat8E8M0;
  check.Supported(blocks ? kSmallFloats.Contains(rows.x_dtype) : !kFloat4.Contains(rows.x_dtype),
                  "scale is {} for x of {}", op.in("scale"), Name(rows.x_dtype));
  if (blocks) return ReadMxScales(check, op, plan);
  plan.dequant.row_scale = FactorsOf(check, op, "pertoken_scale", {rows.m});
  if (rows.w_dtype == DataType::kInt4) return ReadGroupScales(check, op, plan);
  plan.dequant.scale = check.Take(Factors::Of(op, "scale"));
  check.That(plan.dequant.scale.count() == columns, "scale has {} elements, expected {}",
             plan.dequant.scale.count(), columns);
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
  plan.rows = GroupedRowsOf(check, op, op.slot("w"), true, "transpose_w");
  CheckTypes(check, plan);
  if (!check.ok()) return plan;
  const GroupedRows& rows = plan.rows;
  plan.y_rows = op.attr_int("output_bs") > 0 ? op.attr_int("output_bs") : rows.m;
  ReadFactors(check, op, plan);
  plan.index = Integers::Of(op, "row_index");
  check.That(plan.index.given(), "row_index is missing");
  check.Type("row_index", kIndices);
  check.Elements("row_index", {rows.m});
  ReadShared(check, op, plan);
  plan.outputs = {{DataType::kFloat, {plan.y_rows, rows.n}}};
  plan.TakeProduct(op, rows.k, plan.integers());
  plan.row = plan.scratch.Floats(rows.n);
  if (plan.shift.groups == 0) return plan;
  plan.shift.eights = plan.scratch.Floats(rows.k);
  plan.shift.column = plan.scratch.Floats(rows.n);
  plan.shift.line = plan.scratch.Floats(rows.k);
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

// The weights of an expert, of which `scale` is a copy of w_scale.
StoredMatrix WeightsOf(const FinalizePlan& plan, const KernelArgs& args, int64_t expert,
                       BlockScale& scale) {
  const GroupedRows& rows = plan.rows;
  scale = plan.w_scale;
  scale.first = expert * plan.w_factors;
  return {.dtype = rows.w_dtype,
          .data = args.in[1],
          .first = expert * rows.k * rows.n,
          .transposed = rows.transposed,
          .scale = scale.given() ? &scale : nullptr};
}

// Sets shift.column for an expert.
Status ShiftColumns(const FinalizePlan& plan, const KernelArgs& args, const StoredMatrix& w) {
  if (plan.shift.groups == 0) return Status();
  float *eights = plan.shift.eights(args), *column = plan.shift.column(args);
  std::fill_n(eights, plan.rows.k, -8.0f);
  const StoredMatrix x = {DataType::kFloat, eights};
  return plan.product.Run(args, 1, plan.rows.n, x, w, {}, [&](const SumSegment& segment) {
    std::copy_n(segment.floats, segment.count, column + segment.first);
  });
}

// Adds what the offsets of an expert give for a row of x: for each group the sum of its elements
// times the group's offsets.
void AddOffsets(const FinalizePlan& plan, const KernelArgs& args, int64_t expert,
                const SumSegment& segment, float* sums) {
  const Shift& shift = plan.shift;
  const int64_t k = plan.rows.k, depth = k / shift.groups;
  float *line = shift.line(args), *offset = plan.factors(args);
  LoadNumbers(plan.rows.x_dtype, args.in[0], segment.row * k, k, line);
  for (int64_t g = 0; g < shift.groups; ++g) {
    float sum = 0;
    for (int64_t i = 0; i < depth; ++i) sum += line[g * depth + i];
    const int64_t first = (expert * shift.groups + g) * plan.rows.n + segment.first;
    shift.offset.Load(args, first, segment.count, offset);
    for (int64_t i = 0; i < segment.count; ++i) sums[i] += sum * offset[i];
  }
}

// Sums of x - 8 and the offsets' part. The result is in plan.results.
SumSegment Shifted(const FinalizePlan& plan, const KernelArgs& args, int64_t expert,
                   SumSegment segment) {
  if (plan.shift.groups == 0) return segment;
  float* sums = plan.results(args);
  const float* column = plan.shift.column(args) + segment.first;
  for (int64_t i = 0; i < segment.count; ++i) sums[i] = segment.floats[i] + column[i];
  if (plan.shift.offset.given()) AddOffsets(plan, args, expert, segment, sums);
  segment.floats = sums;
  return segment;
}

// Adds the products of the rows [begin, end) of an expert to the rows of their tokens.
Status AddExpert(const FinalizePlan& plan, const KernelArgs& args, int64_t expert, int64_t begin,
                 int64_t end) {
  const GroupedRows& rows = plan.rows;
  const Dequant dequant = plan.dequant.Part(expert, rows.experts);
  float *factors = plan.factors(args), *results = plan.results(args);
  BlockScale x_scale = plan.x_scale, w_scale;
  x_scale.first = begin * x_scale.by_lines;
  const StoredMatrix x = {.dtype = rows.x_dtype,
                          .data = args.in[0],
                          .first = begin * rows.k,
                          .scale = x_scale.given() ? &x_scale : nullptr};
  const StoredMatrix w = WeightsOf(plan, args, expert, w_scale);
  NPUMESH_RETURN_IF_ERROR(ShiftColumns(plan, args, w));
  return plan.product.Run(args, end - begin, rows.n, x, w, {}, [&](SumSegment segment) {
    segment.row += begin;
    dequant.Apply(args, Shifted(plan, args, expert, segment), factors, results);
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
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanFinalize, RunFinalize>(
      "GroupedMatmulFinalizeRouting(x, w, scale?, bias?, pertoken_scale?, group_list?, "
      "shared_input?, logit?, row_index?, offset?; dtype=0, shared_input_weight=1.0, "
      "shared_input_offset=0, transpose_x=false, transpose_w=false, output_bs=0, "
      "group_list_type=1, tuning_config=[]) -> y"));
}

}  // namespace npumesh
