// DynamicBlockQuant and GroupedDynamicBlockQuant: a scale for every tile of a matrix.
//
//   scale = max|tile| / largest;  y = tile / scale
//
// The tiles of a group of rows begin where the group does; the scales of group g begin at row
// begin / row_block_size + g. A tile of zeros has scale 0. min_scale: published texts disagree on
// its meaning, so only 0, which means none, is taken.
#include <algorithm>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/quant/family.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/quantised_row.h"

namespace npumesh {
namespace {

struct TilePlan : Planned {
  DataType x = DataType::kFloat, dtype = DataType::kFloat8E5M2;
  Rounding rounding = Rounding::kNearest;
  float largest = 0;
  int64_t tile_rows = 1, tile_columns = 1, matrices = 1, height = 0, width = 0;
  GroupRows groups;  // absent: one of all rows
  int64_t scale_rows = 0, scale_columns = 0;
  Workspace<float> row;

  // The element where a row of x begins.
  int64_t Element(int64_t matrix, int64_t r) const { return (matrix * height + r) * width; }
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
Result<TilePlan> PlanTiles(const OpContext& op) {
  Check check(op);
  check.RankBetween("x", kFloats, 2, 3);
  TilePlan plan;
  plan.tile_rows = op.attr_int("row_block_size");
  plan.tile_columns = op.attr_int("col_block_size");
  check.That(plan.tile_rows >= 1 && plan.tile_columns >= 1,
             "blocks are {} x {}, expected at least 1 x 1", plan.tile_rows, plan.tile_columns);
  ReadTypes(check, op, plan);
  if (!check.ok()) return check.status();
  const Shape& x = op.in("x").shape;
  const int rank = x.rank();
  plan.x = op.in("x").dtype;
  plan.height = x[rank - 2];
  plan.width = x[rank - 1];
  plan.matrices = rank == 3 ? x[0] : 1;
  plan.scale_rows = CeilDiv(plan.height, plan.tile_rows);
  plan.scale_columns = CeilDiv(plan.width, plan.tile_columns);
  if constexpr (kGrouped) {
    check.Only("group_list_type", 0);  // prefix sums
    plan.groups = check.Take(GroupRows::Of(op, "group_list", false, plan.height));
    plan.scale_rows = plan.height / plan.tile_rows + plan.groups.groups();
  }
  Shape scales = x;
  scales[rank - 2] = plan.scale_rows;
  scales[rank - 1] = plan.scale_columns;
  plan.outputs = {{plan.dtype, x}, {DataType::kFloat, scales}};
  plan.row = plan.scratch.Floats(plan.width);
  return check.Done(std::move(plan));
}

// A row of tiles, of rows [top, bottom) of a matrix. `scales` are zeros before.
void RunTiles(const TilePlan& plan, const KernelArgs& args, int64_t matrix, int64_t top,
              int64_t bottom, float* scales) {
  float* row = plan.row(args);
  const int64_t width = plan.width, tile = plan.tile_columns;
  for (int64_t r = top; r < bottom; ++r) {
    LoadNumbers(plan.x, args.in[0], plan.Element(matrix, r), width, row);
    for (int64_t c = 0; c < width; c += tile) {
      float& most = scales[c / tile];
      most = std::max(most, LargestMagnitude(row + c, std::min(tile, width - c)));
    }
  }
  for (int64_t c = 0; c < plan.scale_columns; ++c) scales[c] /= plan.largest;
  for (int64_t r = top; r < bottom; ++r) {
    LoadNumbers(plan.x, args.in[0], plan.Element(matrix, r), width, row);
    for (int64_t c = 0; c < width; ++c) {
      const float scale = scales[c / tile];
      row[c] = scale == 0 ? 0.0f : row[c] / scale;
    }
    StoreNarrow(plan.dtype, plan.rounding, row, args.out[0], plan.Element(matrix, r), width);
  }
}

// Rows [begin, end) of a matrix, whose scales begin at row `first` of its scales.
void RunRows(const TilePlan& plan, const KernelArgs& args, int64_t matrix, int64_t begin,
             int64_t end, int64_t first) {
  float* scales =
      static_cast<float*>(args.out[1]) + (matrix * plan.scale_rows + first) * plan.scale_columns;
  for (int64_t top = begin; top < end; top += plan.tile_rows) {
    RunTiles(plan, args, matrix, top, std::min(end, top + plan.tile_rows), scales);
    scales += plan.scale_columns;
  }
}

// Rows after the last group are zeros.
Status RunGroups(const TilePlan& plan, const KernelArgs& args, int64_t matrix) {
  const auto run = [&](int64_t group, int64_t begin, int64_t end) {
    RunRows(plan, args, matrix, begin, end, begin / plan.tile_rows + group);
  };
  NPUMESH_ASSIGN_OR_RETURN(const int64_t done, plan.groups.ForEach(args, run));
  float* row = plan.row(args);
  std::fill_n(row, plan.width, 0.0f);
  for (int64_t r = done; r < plan.height; ++r) {
    StoreNarrow(plan.dtype, plan.rounding, row, args.out[0], plan.Element(matrix, r), plan.width);
  }
  return Status();
}

Status RunBlocks(const TilePlan& plan, const KernelArgs& args) {
  std::fill_n(static_cast<float*>(args.out[1]), plan.outputs[1].shape.elements(), 0.0f);
  for (int64_t m = 0; m < plan.matrices; ++m) {
    if (plan.groups.given()) {
      NPUMESH_RETURN_IF_ERROR(RunGroups(plan, args, m));
    } else {
      RunRows(plan, args, m, 0, plan.height, 0);
    }
  }
  return Status();
}

}  // namespace

void RegisterBlockQuantOps(OpRegistry& registry) {
  registry.Add(Define<PlanTiles<false>, RunBlocks>(
      "DynamicBlockQuant(x; min_scale=0.0, round_mode=\"rint\", dst_type=35, row_block_size=1, "
      "col_block_size=128, dst_type_max=0.0) -> y, scale"));
  registry.Add(Define<PlanTiles<true>, RunBlocks>(
      "GroupedDynamicBlockQuant(x, group_list; min_scale=0.0, round_mode=\"rint\", dst_type=35, "
      "row_block_size=1, col_block_size=128, group_list_type=0, dst_type_max=0.0) -> y, scale"));
}

}  // namespace npumesh
