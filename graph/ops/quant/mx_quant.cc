// MX quantisation of tensors: DynamicMxQuant, DynamicMxQuantWithDualAxis, DynamicBlockMxQuant,
// GroupedDynamicMxQuant and AntiMxQuant.
#include <algorithm>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/quant/mx_block.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/small_float.h"

namespace npumesh {
namespace {

// x becomes elements of the format, in its shape.
struct MxConversion : Planned {
  DataType x = DataType::kFloat;
  MxFormat format;
  Workspace<float> room;  // a block of the longest inner extent, or a tile
};

void ReadConversion(Check& check, const OpContext& op, int least_rank, int most_rank,
                    MxConversion& plan) {
  check.RankBetween("x", kFloats, least_rank, most_rank);
  plan.x = op.in("x").dtype;
  plan.format = MxFormatOf(check, op, op.in("x").shape);
}

// Quantises the elements of x from `first` on, which `axis` describes, into the same elements of y.
void RunAxis(const MxConversion& plan, const KernelArgs& args, const MxAxis& axis, int64_t first,
             void* y, uint8_t* scales) {
  float* room = plan.room(args);
  auto* to = static_cast<std::byte*>(y) + first * BitsOf(plan.format.dtype) / 8;
  for (int64_t o = 0; o < axis.outer; ++o) {
    for (int64_t b = 0; b < axis.blocks(); ++b) {
      const int64_t begin = b * axis.block;
      const int64_t count = std::min(axis.block, axis.length - begin) * axis.inner;
      LoadNumbers(plan.x, args.in[0], first + (o * axis.length + begin) * axis.inner, count, room);
      QuantiseMxBlock(plan.format, axis, o, b, room, to, scales);
    }
  }
}

// ---- DynamicMxQuant, DynamicMxQuantWithDualAxis ----

struct MxPlan : MxConversion {
  std::vector<MxAxis> axes;  // of results 0, 1
};

// Adds the result along an axis: elements and scales.
void AddAxis(const OpContext& op, int axis, int64_t block, MxPlan& plan) {
  const Shape& x = op.in("x").shape;
  plan.axes.push_back(MxAxisOf(x, axis, block));
  plan.outputs.push_back({plan.format.dtype, x});
  plan.outputs.push_back(MxScaleType(x, axis, block));
}

MxPlan PlanMx(const OpContext& op, Check& check) {
  MxPlan plan;
  ReadConversion(check, op, 1, 7, plan);
  const int axis = check.Axis("axis", op.in("x").shape.rank());
  const int64_t block = op.attr_int("blocksize");
  check.Supported(block > 0 && block % kMxBlock == 0 && block <= 1024,
                  "blocksize is {}, expected a multiple of 32 up to 1024", block);
  if (!check.ok()) return plan;
  AddAxis(op, axis, block, plan);
  plan.room = plan.scratch.Floats(block * plan.axes[0].inner);
  return plan;
}

MxPlan PlanTwoAxes(const OpContext& op, Check& check) {
  MxPlan plan;
  ReadConversion(check, op, 2, 7, plan);
  if (!check.ok()) return plan;
  const int rank = op.in("x").shape.rank();
  AddAxis(op, rank - 1, kMxBlock, plan);
  AddAxis(op, rank - 2, kMxBlock, plan);
  plan.room = plan.scratch.Floats(kMxBlock * std::max<int64_t>(plan.axes[1].inner, 1));
  return plan;
}

Status RunMx(const MxPlan& plan, const KernelArgs& args) {
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    ClearOutput(plan, args, static_cast<int>(2 * i + 1));
    RunAxis(plan, args, plan.axes[i], 0, args.out[2 * i],
            static_cast<uint8_t*>(args.out[2 * i + 1]));
  }
  return Status();
}

// ---- DynamicBlockMxQuant ----

// Tiles of 32 x 32 with one scale each, which both outputs of scales repeat.
struct MxTilePlan : MxConversion {
  MxAxis along, down;
};

MxTilePlan PlanMxTiles(const OpContext& op, Check& check) {
  MxTilePlan plan;
  ReadConversion(check, op, 2, 3, plan);
  if (!check.ok()) return plan;
  const Shape& x = op.in("x").shape;
  const int last = x.rank() - 1;
  plan.along = MxAxisOf(x, last);
  plan.down = MxAxisOf(x, last - 1);
  plan.outputs = {{plan.format.dtype, x}, MxScaleType(x, last), MxScaleType(x, last - 1)};
  plan.room = plan.scratch.Floats(kMxBlock * kMxBlock);
  return plan;
}

// The tile in row r and column c of the tiles of matrix m.
void RunTile(const MxTilePlan& plan, const KernelArgs& args, int64_t m, int64_t r, int64_t c) {
  float* tile = plan.room(args);
  const int64_t width = plan.along.length, height = plan.down.length;
  const int64_t top = r * kMxBlock, left = c * kMxBlock;
  const int64_t rows = std::min(kMxBlock, height - top);
  const int64_t columns = std::min(kMxBlock, width - left);
  for (int64_t i = 0; i < rows; ++i) {
    LoadNumbers(plan.x, args.in[0], (m * height + top + i) * width + left, columns,
                tile + i * columns);
  }
  const uint8_t scale = MxScaleByte(plan.format, MxMagnitude(tile, rows * columns, 1));
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = m * height + top + i;
    StoreMx(plan.format, scale, tile + i * columns, columns, args.out[0], row * width + left);
    static_cast<uint8_t*>(args.out[1])[plan.along.ScaleAt(row, c, 0)] = scale;
  }
  for (int64_t i = 0; i < columns; ++i) {
    static_cast<uint8_t*>(args.out[2])[plan.down.ScaleAt(m, r, left + i)] = scale;
  }
}

Status RunMxTiles(const MxTilePlan& plan, const KernelArgs& args) {
  for (const int port : {1, 2}) ClearOutput(plan, args, port);
  for (int64_t m = 0; m < plan.down.outer; ++m) {
    for (int64_t r = 0; r < plan.down.blocks(); ++r) {
      for (int64_t c = 0; c < plan.along.blocks(); ++c) RunTile(plan, args, m, r, c);
    }
  }
  return Status();
}

// ---- GroupedDynamicMxQuant ----

// The pairs of group g begin at begin / 64 + g; rows after the last group are zeros.
struct MxGroupedPlan : MxConversion {
  GroupRows groups;
  int64_t width = 0;
};

MxGroupedPlan PlanMxGrouped(const OpContext& op, Check& check) {
  MxGroupedPlan plan;
  const auto [height, width] = check.Matrix("x", kFloats);
  plan.width = width;
  ReadConversion(check, op, 2, 2, plan);
  check.Only("blocksize", kMxBlock);
  plan.groups = check.Take(GroupRows::Of(op, "group_index", false, height));
  const Shape scales = {height / (2 * kMxBlock) + plan.groups.groups(), width, 2};
  plan.outputs = {{plan.format.dtype, op.in("x").shape}, {DataType::kFloat8E8M0, scales}};
  plan.room = plan.scratch.Floats(kMxBlock * width);
  return plan;
}

Status RunMxGroup(const MxGroupedPlan& plan, const KernelArgs& args, int64_t group, int64_t begin,
                  int64_t end) {
  const int64_t width = plan.width, pair = begin / (2 * kMxBlock) + group;
  RunAxis(plan, args, {1, end - begin, width, kMxBlock}, begin * width, args.out[0],
          static_cast<uint8_t*>(args.out[1]) + pair * width * 2);
  return Status();
}

Status RunMxGrouped(const MxGroupedPlan& plan, const KernelArgs& args) {
  ClearOutputs(plan, args);
  return plan.groups.Run(plan, args, RunMxGroup).status();
}

// ---- AntiMxQuant ----

struct AntiPlan : Planned {
  MxAxis axis;
  DataType from = DataType::kUndefined, to = DataType::kUndefined;
};

AntiPlan PlanAnti(const OpContext& op, Check& check) {
  AntiPlan plan;
  const TensorType& x = op.in("x");
  check.RankAtLeast("x", kFloat8 | kFloat4, 1);
  const int axis = check.Axis("axis", x.shape.rank());
  if (!check.ok()) return plan;
  check.TypeAndShape("mxscale", DataType::kFloat8E8M0, MxScaleType(x.shape, axis).shape);
  CheckPacking(check, x.dtype, x.shape);
  plan.axis = MxAxisOf(x.shape, axis);
  plan.from = x.dtype;
  plan.to = check.TypeOf("dst_type", kFloats);
  plan.outputs = {{plan.to, x.shape}};
  return plan;
}

Status RunAnti(const AntiPlan& plan, const KernelArgs& args) {
  constexpr int64_t kChunk = 512;
  float row[kChunk];
  const MxAxis& axis = plan.axis;
  const auto* scales = static_cast<const uint8_t*>(args.in[1]);
  for (int64_t line = 0; line < axis.outer * axis.length; ++line) {
    const int64_t o = line / axis.length, b = line % axis.length / axis.block;
    for (int64_t i = 0; i < axis.inner; i += kChunk) {
      const int64_t count = std::min(kChunk, axis.inner - i);
      LoadNumbers(plan.from, args.in[0], line * axis.inner + i, count, row);
      for (int64_t j = 0; j < count; ++j) {
        row[j] *= ToFloat(Float8E8m0{scales[axis.ScaleAt(o, b, i + j)]});
      }
      StoreRow(plan.to, row, args.out[0], line * axis.inner + i, count);
    }
  }
  return Status();
}

}  // namespace

void RegisterMxQuantOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanMx, RunMx>(
      "DynamicMxQuant(x; axis=-1, round_mode=\"rint\", dst_type=40, blocksize=32, scale_alg=0, "
      "dst_type_max=0.0, max_low_bound=0.0) -> y, mxscale"));
  registry.Add(Define<PlanTwoAxes, RunMx>(
      "DynamicMxQuantWithDualAxis(x; round_mode=\"rint\", dst_type=40, scale_alg=0, "
      "dst_type_max=0.0) -> y1, mxscale1, y2, mxscale2"));
  registry.Add(Define<PlanMxTiles, RunMxTiles>(
      "DynamicBlockMxQuant(x; round_mode=\"rint\", dst_type=40, scale_alg=0, dst_type_max=0.0) "
      "-> y, scale1, scale2"));
  registry.Add(Define<PlanMxGrouped, RunMxGrouped>(
      "GroupedDynamicMxQuant(x, group_index; round_mode=\"rint\", dst_type=35, blocksize=32, "
      "scale_alg=0, dst_type_max=0.0) -> y, mxscale"));
  registry.Add(Define<PlanAnti, RunAnti>("AntiMxQuant(x, mxscale; axis=-1, dst_type=27) -> y"));
}

}  // namespace npumesh
