// DynamicBlockQuant and GroupedDynamicBlockQuant: a scale for every tile of a matrix. Ops reference
// 5.19.
//
//   scale = max|tile| / largest;  y = tile / scale
//
// The tiles of a group of rows begin where the group does; the scales of group g begin at row
// begin / row_block_size + g. A tile of zeros has scale 0. min_scale: published texts disagree on
// its meaning, so only 0, which means none, is taken.
#include <algorithm>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/group_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/quantised_row.h"

namespace npumesh {
namespace {

struct TilePlan {
  DataType dtype = DataType::kFloat8E5M2;
  Rounding rounding = Rounding::kNearest;
  float largest = 0;
  int64_t tile_rows = 1;
  int64_t tile_columns = 1;
  int64_t matrices = 1;
  int64_t height = 0;
  int64_t width = 0;
  GroupRows groups;  // absent: one of all rows
  Shape scales;

  int64_t scale_rows() const { return scales[scales.rank() - 2]; }
  int64_t scale_columns() const { return scales[scales.rank() - 1]; }
};

bool IsGrouped(const OpContext& op) {
  return op.schema().type == "GroupedDynamicBlockQuant";
}

Result<TilePlan> PlanBlocks(const OpContext& op) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank();
  TilePlan plan;
  plan.tile_rows = op.attr_int("row_block_size");
  plan.tile_columns = op.attr_int("col_block_size");
  if (!IsRowType(x.dtype) || rank < 2 || rank > 3 || plan.tile_rows < 1 || plan.tile_columns < 1) {
    return Error(
        Code::kInvalidArgument,
        "{}: \"x\" is {} in blocks of {} x {}, expected two or three dimensions of a float "
        "type and blocks of at least 1 x 1",
        op.Who(), x.ToString(), plan.tile_rows, plan.tile_columns);
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.dtype, NarrowType(op, "dst_type"));
  NPUMESH_ASSIGN_OR_RETURN(plan.rounding, RoundingOf(op, "round_mode"));
  const float largest = op.attr_float("dst_type_max");
  plan.largest = largest > 0 ? largest : LargestNarrow(plan.dtype);
  if (op.attr_float("min_scale") != 0 || plan.dtype == DataType::kInt4 ||
      (largest != 0 && plan.dtype != DataType::kHifloat8)) {
    return Error(Code::kUnsupported,
                 "{}: min_scale {}, dst_type_max {} and dst_type {}; expected min_scale 0, int8 or "
                 "an 8-bit float, and dst_type_max 0 unless it is hifloat8",
                 op.Who(), op.attr_float("min_scale"), largest, Name(plan.dtype));
  }
  plan.height = x.shape[rank - 2];
  plan.width = x.shape[rank - 1];
  plan.matrices = rank == 3 ? x.shape[0] : 1;
  int64_t rows = (plan.height + plan.tile_rows - 1) / plan.tile_rows;
  if (IsGrouped(op)) {
    if (op.attr_int("group_list_type") != 0) {
      return Error(Code::kUnsupported, "{}: group_list_type is {}, expected 0, prefix sums",
                   op.Who(), op.attr_int("group_list_type"));
    }
    NPUMESH_ASSIGN_OR_RETURN(plan.groups, GroupRows::Of(op, "group_list", false, plan.height));
    rows = plan.height / plan.tile_rows + plan.groups.groups();
  }
  plan.scales = x.shape;
  plan.scales[rank - 2] = rows;
  plan.scales[rank - 1] = (plan.width + plan.tile_columns - 1) / plan.tile_columns;
  return plan;
}

Status InferBlocks(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const TilePlan plan, PlanBlocks(op));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.dtype, op.in("x").shape));
  return SetOutput(op, 1, DataType::kFloat, plan.scales);
}

class BlockQuantKernel final : public Kernel {
 public:
  BlockQuantKernel(const OpContext& op, TilePlan plan)
      : plan_(std::move(plan)), x_(op.in("x").dtype) {}

  // A row of x and the scales of a row of tiles.
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(plan_.width + plan_.scale_columns()) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* scales = static_cast<float*>(args.out[1]);
    std::fill_n(scales, plan_.scales.elements(), 0.0f);
    for (int64_t m = 0; m < plan_.matrices; ++m) {
      float* own = scales + m * plan_.scale_rows() * plan_.scale_columns();
      int64_t done = plan_.height;
      if (!plan_.groups.given()) {
        RunGroup(args, m, 0, plan_.height, own);
        continue;
      }
      done = 0;
      NPUMESH_RETURN_IF_ERROR(
          plan_.groups.ForEach(args, [&](int64_t group, int64_t begin, int64_t end) {
            const int64_t first = begin / plan_.tile_rows + group;
            RunGroup(args, m, begin, end, own + first * plan_.scale_columns());
            done = end;
            return Status();
          }));
      ClearRows(args, m, done);
    }
    return Status();
  }

 private:
  int64_t Element(int64_t matrix, int64_t row) const {
    return (matrix * plan_.height + row) * plan_.width;
  }

  void RunGroup(const KernelArgs& args, int64_t matrix, int64_t begin, int64_t end,
                float* scales) const {
    for (int64_t top = begin; top < end; top += plan_.tile_rows) {
      const int64_t bottom = std::min(end, top + plan_.tile_rows);
      RunTiles(args, matrix, top, bottom, scales);
      scales += plan_.scale_columns();
    }
  }

  void RunTiles(const KernelArgs& args, int64_t matrix, int64_t top, int64_t bottom,
                float* scales) const {
    auto* row = static_cast<float*>(args.scratch);
    const int64_t width = plan_.width, tile = plan_.tile_columns;
    for (int64_t r = top; r < bottom; ++r) {
      LoadNumbers(x_, args.in[0], Element(matrix, r), width, row);
      for (int64_t c = 0; c < width; c += tile) {
        float& most = scales[c / tile];
        most = std::max(most, LargestMagnitude(row + c, std::min(tile, width - c)));
      }
    }
    for (int64_t c = 0; c < plan_.scale_columns(); ++c) scales[c] /= plan_.largest;
    for (int64_t r = top; r < bottom; ++r) {
      LoadNumbers(x_, args.in[0], Element(matrix, r), width, row);
      for (int64_t c = 0; c < width; ++c) {
        const float scale = scales[c / tile];
        row[c] = scale == 0 ? 0.0f : row[c] / scale;
      }
      StoreNarrow(plan_.dtype, plan_.rounding, row, args.out[0], Element(matrix, r), width);
    }
  }

  // Rows behind the last group.
  void ClearRows(const KernelArgs& args, int64_t matrix, int64_t begin) const {
    auto* row = static_cast<float*>(args.scratch);
    std::fill_n(row, plan_.width, 0.0f);
    for (int64_t r = begin; r < plan_.height; ++r) {
      StoreNarrow(plan_.dtype, plan_.rounding, row, args.out[0], Element(matrix, r), plan_.width);
    }
  }

  TilePlan plan_;
  DataType x_;
};

Result<std::unique_ptr<Kernel>> MakeBlocks(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(TilePlan plan, PlanBlocks(op));
  return std::unique_ptr<Kernel>(std::make_unique<BlockQuantKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterBlockQuantOps(OpRegistry& registry) {
  const AttrSpec common[] = {{"min_scale", AttrValue::Float(0.0f)},
                             {"round_mode", AttrValue::String("rint")},
                             {"dst_type", AttrValue::Int(35)},
                             {"row_block_size", AttrValue::Int(1)},
                             {"col_block_size", AttrValue::Int(128)}};
  const AttrSpec largest = {"dst_type_max", AttrValue::Float(0.0f)};
  OpSchema plain = {"DynamicBlockQuant", {{"x"}}, {{"y"}, {"scale"}}, {}};
  plain.attrs.assign(std::begin(common), std::end(common));
  plain.attrs.push_back(largest);
  OpSchema grouped = {"GroupedDynamicBlockQuant", {{"x"}, {"group_list"}}, {{"y"}, {"scale"}}, {}};
  grouped.attrs.assign(std::begin(common), std::end(common));
  grouped.attrs.push_back({"group_list_type", AttrValue::Int(0)});
  grouped.attrs.push_back(largest);
  registry.Add({.schema = std::move(plain), .infer = InferBlocks, .make_kernel = MakeBlocks});
  registry.Add({.schema = std::move(grouped), .infer = InferBlocks, .make_kernel = MakeBlocks});
}

}  // namespace npumesh
