// DynamicBlockQuant and GroupedDynamicBlockQuant: a scale for every tile of a matrix. FlatQuant:
// one for a whole matrix, or for every 32 elements.
#include <algorithm>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/quant/mx_block.h"
#include "graph/ops/toolbox/product/float_product.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/quantised_row.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// ---- DynamicBlockQuant, GroupedDynamicBlockQuant ----

//   scale = max|tile| / largest;  y = tile / scale
//
// The tiles of a group of rows begin where the group does; the scales of group g begin at row
// begin / row_block_size + g. A tile of zeros has scale 0. min_scale: published texts disagree on
// its meaning, so only 0, which means none, is taken.
struct TilePlan : Planned {
  InputRows x;  // of all matrices
  DataType dtype = DataType::kFloat8E5M2;
  Rounding rounding = Rounding::kNearest;
  float largest = 0;
  int64_t tile_rows = 1, tile_columns = 1, matrices = 1, height = 0;
  GroupRows groups;
  int64_t scale_rows = 0, scale_columns = 0;
  Workspace<float> row;
};

void ReadTypes(Check& check, const OpContext& op, TilePlan& plan) {
  plan.dtype = check.TypeOf("dst_type", kNarrow);
  plan.rounding = check.Take(RoundingOf(op, "round_mode"));
  const float least = op.attr_float("min_scale"), largest = op.attr_float("dst_type_max");
  check.Supported(least == 0, "min_scale {}, expected 0", least);
  check.Supported(plan.dtype != DataType::kInt4, "dst_type is int4, expected {}",
                  (kFloat8 | DataType::kInt8 | DataType::kHifloat8));
  check.Supported(largest == 0 || plan.dtype == DataType::kHifloat8,
                  "dst_type_max {} for {}, expected 0 unless dst_type is hifloat8", largest,
                  Name(plan.dtype));
  plan.largest = largest > 0 ? largest : LargestNarrow(plan.dtype);
}

template <bool kGrouped>
TilePlan PlanTiles(const OpContext& op, Check& check) {
  TilePlan plan;
  check.RankBetween("x", kFloats, 2, 3);
  plan.tile_rows = op.attr_int("row_block_size");
  plan.tile_columns = op.attr_int("col_block_size");
  check.That(plan.tile_rows >= 1 && plan.tile_columns >= 1,
             "blocks are {} x {}, expected at least 1 x 1", plan.tile_rows, plan.tile_columns);
  ReadTypes(check, op, plan);
  if (!check.ok()) return plan;
  const Shape& x = op.in("x").shape;
  const int rank = x.rank();
  plan.x = InputRows::Of(check, op, "x");
  plan.height = x[rank - 2];
  plan.matrices = rank == 3 ? x[0] : 1;
  plan.scale_rows = CeilDiv(plan.height, plan.tile_rows);
  plan.scale_columns = CeilDiv(plan.x.width, plan.tile_columns);
  plan.groups = check.Take(GroupRows::Of(op, kGrouped ? "group_list" : "", false, plan.height));
  if constexpr (kGrouped) {
    check.Only("group_list_type", 0);  // prefix sums
    plan.scale_rows = plan.height / plan.tile_rows + plan.groups.groups();
  }
  Shape scales = x;
  scales[rank - 2] = plan.scale_rows;
  scales[rank - 1] = plan.scale_columns;
  plan.outputs = {{plan.dtype, x}, {DataType::kFloat, scales}};
  plan.row = plan.scratch.Floats(plan.x.width);
  return plan;
}

// A row of tiles, of rows [top, bottom) of x. `scales` are zeros before.
void RunTiles(const TilePlan& plan, const KernelArgs& args, int64_t top, int64_t bottom,
              float* scales) {
  float* row = plan.row(args);
  const int64_t width = plan.x.width, tile = plan.tile_columns;
  for (int64_t r = top; r < bottom; ++r) {
    plan.x.Load(args, r, row);
    for (int64_t c = 0; c < width; c += tile) {
      float& most = scales[c / tile];
      most = std::max(most, LargestMagnitude(row + c, std::min(tile, width - c)));
    }
  }
  for (int64_t c = 0; c < plan.scale_columns; ++c) scales[c] /= plan.largest;
  for (int64_t r = top; r < bottom; ++r) {
    plan.x.Load(args, r, row);
    for (int64_t c = 0; c < width; ++c) {
      const float scale = scales[c / tile];
      row[c] = scale == 0 ? 0.0f : row[c] / scale;
    }
    StoreNarrow(plan.dtype, plan.rounding, row, args.out[0], r * width, width);
  }
}

// Rows [begin, end) of a matrix, whose scales begin at row `first` of its scales.
void RunRows(const TilePlan& plan, const KernelArgs& args, int64_t matrix, int64_t begin,
             int64_t end, int64_t first) {
  float* scales =
      static_cast<float*>(args.out[1]) + (matrix * plan.scale_rows + first) * plan.scale_columns;
  const int64_t above = matrix * plan.height;
  for (int64_t top = begin; top < end; top += plan.tile_rows) {
    RunTiles(plan, args, above + top, above + std::min(end, top + plan.tile_rows), scales);
    scales += plan.scale_columns;
  }
}

// Rows after the last group are zeros.
Status RunBlocks(const TilePlan& plan, const KernelArgs& args) {
  if (plan.groups.given()) ClearOutput(plan, args, 0);
  ClearOutput(plan, args, 1);
  for (int64_t m = 0; m < plan.matrices; ++m) {
    const auto run = [&](int64_t group, int64_t begin, int64_t end) {
      RunRows(plan, args, m, begin, end, begin / plan.tile_rows + group);
    };
    NPUMESH_RETURN_IF_ERROR(plan.groups.ForEach(args, run).status());
  }
  return Status();
}

// ---- FlatQuant ----

//   z = kronecker_p1 (x kronecker_p2), for each matrix of x
//   to int4:        quant_scale = max|z| / (7 / clip_ratio);  out = z / quant_scale
//   to float4_e2m1: z as a row of MX blocks (mx_block.h)
//
// Stated in CANN's documents: the formulas, which product comes first, and 0 < clip_ratio <= 1
// (8.1 and 8.2 say 7 * clip_ratio, later ones and the published kernels 7 / clip_ratio). Seen in
// the kernels: the first product is rounded to the type of x, MX blocks leave clip_ratio alone, and
// a matrix of zeros has scale 0 and stays zeros.
//
// Our reading: z and the quotients stay float32, where the kernels round both to float16 (z to
// bfloat16 for MX blocks) before the last rounding; integers are rounded to the nearest, ties to
// even, and clipped to [-8, 7]; sizes have no bound.
struct FlatPlan : Planned {
  DataType x = DataType::kFloat16;
  DataType dtype = DataType::kInt4;
  float largest = 0;  // of int4: what max|z| is scaled to
  int64_t matrices = 0;
  int64_t height = 0;
  int64_t width = 0;
  int threads = 1;
  Workspace<float> left, right, product, z;
};

// dst_type_max and group_list are of the newest chips.
void CheckFlatAttributes(Check& check, const OpContext& op) {
  const float clip = op.attr_float("clip_ratio"), largest = op.attr_float("dst_type_max");
  check.That(clip > 0 && clip <= 1, "clip_ratio is {}, expected more than 0 and at most 1", clip);
  check.Supported(largest == 0, "dst_type_max is {}, expected 0", largest);
  check.NotFed({"group_list"});
  check.Only("group_list_type", 0);
}

FlatPlan PlanFlat(const OpContext& op, Check& check) {
  FlatPlan plan;
  check.Rank("x", {DataType::kFloat16, DataType::kBfloat16}, 3);
  plan.dtype = check.TypeOf("dst_dtype", {DataType::kInt4, DataType::kFloat4E2M1});
  CheckFlatAttributes(check, op);
  if (!check.ok()) return plan;
  const auto& [type, x] = op.in("x");
  check.TypeAndShape("kronecker_p1", type, {x[1], x[1]});
  check.TypeAndShape("kronecker_p2", type, {x[2], x[2]});
  CheckPacking(check, plan.dtype, x);
  plan.x = type;
  plan.largest = LargestOf(DataType::kInt4) / op.attr_float("clip_ratio");
  plan.matrices = x[0];
  plan.height = x[1];
  plan.width = x[2];
  plan.threads = op.threads();
  const Shape rows = {x[0], x[1] * x[2]};
  if (plan.dtype == DataType::kInt4) {
    plan.outputs = {{plan.dtype, x}, {DataType::kFloat, {x[0]}}};
  } else {
    plan.outputs = {{plan.dtype, rows}, MxScaleType(rows, 1)};
  }
  plan.left = plan.scratch.Floats(x[1] * x[1]);
  plan.right = plan.scratch.Floats(x[2] * x[2]);
  plan.scratch.Take(rows[1], {&plan.product, &plan.z});
  return plan;
}

// Sets plan.z to that of matrix `k`. REQUIRES: plan.left and plan.right are loaded.
Status Transform(const FlatPlan& plan, const KernelArgs& args, int64_t k) {
  const int64_t m = plan.height, n = plan.width;
  const FloatMatrix left = {plan.left(args), m, false}, right = {plan.right(args), n, false};
  float *product = plan.product(args), *z = plan.z(args);
  LoadNumbers(plan.x, args.in[0], k * m * n, m * n, z);
  NPUMESH_RETURN_IF_ERROR(Multiply(m, n, n, {z, n, false}, right, false, product, n));
  StoreRow(plan.x, product, z, 0, m * n);  // the rounding
  LoadNumbers(plan.x, z, 0, m * n, product);
  return Multiply(m, n, m, left, {product, n, false}, false, z, n);
}

// Quantises plan.z, which is changed, into the outputs of matrix `k`.
void QuantiseMatrix(const FlatPlan& plan, const KernelArgs& args, int64_t k) {
  const int64_t size = plan.height * plan.width;
  float* z = plan.z(args);
  if (plan.dtype == DataType::kInt4) {
    static_cast<float*>(args.out[1])[k] =
        QuantiseRow(plan.dtype, Rounding::kNearest, plan.largest, z, size, args.out[0], k * size);
    return;
  }
  const MxFormat format = {.dtype = plan.dtype};
  const MxAxis row = {plan.matrices, size, 1, kMxBlock};
  QuantiseMxRow(format, row, k, z, args.out[0], args.out[1]);
}

Status RunFlat(const FlatPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  LoadNumbers(plan.x, args.in[1], 0, plan.height * plan.height, plan.left(args));
  LoadNumbers(plan.x, args.in[2], 0, plan.width * plan.width, plan.right(args));
  ClearOutput(plan, args, 1);  // an odd number of blocks leaves the last scale unset
  for (int64_t k = 0; k < plan.matrices; ++k) {
    NPUMESH_RETURN_IF_ERROR(Transform(plan, args, k));
    QuantiseMatrix(plan, args, k);
  }
  return Status();
}

}  // namespace

void RegisterBlockQuantOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanTiles<false>, RunBlocks>(
      "DynamicBlockQuant(x; min_scale=0.0, round_mode=\"rint\", dst_type=35, row_block_size=1, "
      "col_block_size=128, dst_type_max=0.0) -> y, scale"));
  registry.Add(Define<PlanTiles<true>, RunBlocks>(
      "GroupedDynamicBlockQuant(x, group_list; min_scale=0.0, round_mode=\"rint\", dst_type=35, "
      "row_block_size=1, col_block_size=128, group_list_type=0, dst_type_max=0.0) -> y, scale"));
  registry.Add(Define<PlanFlat, RunFlat>(
      "FlatQuant(x, kronecker_p1, kronecker_p2, group_list?; clip_ratio=1.0, dst_dtype=29, "
      "dst_type_max=0.0, group_list_type=0) -> out, quant_scale"));
}

}  // namespace npumesh
