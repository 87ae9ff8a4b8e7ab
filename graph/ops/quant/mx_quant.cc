// MX quantisation of tensors: DynamicMxQuant, DynamicMxQuantWithDualAxis, DynamicBlockMxQuant,
// GroupedDynamicMxQuant and AntiMxQuant.
#include <algorithm>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/quant/family.h"
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
};

void ReadConversion(Check& check, const OpContext& op, int least_rank, int most_rank,
                    MxConversion& plan) {
  check.RankBetween("x", kFloats, least_rank, most_rank);
  plan.x = op.in("x").dtype;
  plan.format = MxFormatOf(check, op);
  CheckMxPacking(check, plan.format.dtype, op.in("x").shape);
}

TensorType ScaleType(const Shape& x, int axis, int64_t block) {
  return {DataType::kFloat8E8M0, MxScaleShape(x, axis, block)};
}

// ---- DynamicMxQuant, DynamicMxQuantWithDualAxis ----

struct MxPlan : MxConversion {
  std::vector<MxAxis> axes;  // of results 0, 1
  Workspace<float> room;     // a block of the longest inner extent
};

// Adds the result along an axis: elements and scales.
void AddAxis(const OpContext& op, int axis, int64_t block, MxPlan& plan) {
  const Shape& x = op.in("x").shape;
  plan.axes.push_back(MxAxisOf(x, axis, block));
  plan.outputs.push_back({plan.format.dtype, x});
  plan.outputs.push_back(ScaleType(x, axis, block));
}

Result<MxPlan> PlanMx(const OpContext& op) {
  Check check(op);
  MxPlan plan;
  ReadConversion(check, op, 1, 7, plan);
  const int axis = check.Axis("axis", op.in("x").shape.rank());
  const int64_t block = op.attr_int("blocksize");
  check.Supported(block > 0 && block % kMxBlock == 0 && block <= 1024,
                  "blocksize is {}, expected a multiple of 32 up to 1024", block);
  if (!check.ok()) return check.status();
  AddAxis(op, axis, block, plan);
  plan.room = plan.scratch.Floats(block * plan.axes[0].inner);
  return check.Done(std::move(plan));
}

Result<MxPlan> PlanTwoAxes(const OpContext& op) {
  Check check(op);
  MxPlan plan;
  ReadConversion(check, op, 2, 7, plan);
  if (!check.ok()) return check.status();
  const int rank = op.in("x").shape.rank();
  AddAxis(op, rank - 1, kMxBlock, plan);
  AddAxis(op, rank - 2, kMxBlock, plan);
  plan.room = plan.scratch.Floats(kMxBlock * std::max<int64_t>(plan.axes[1].inner, 1));
  return check.Done(std::move(plan));
}

void RunAxis(const MxPlan& plan, const KernelArgs& args, const MxAxis& axis, void* y,
             void* scales) {
  float* room = plan.room(args);
  for (int64_t o = 0; o < axis.outer; ++o) {
    for (int64_t b = 0; b < axis.blocks(); ++b) {
      const int64_t begin = b * axis.block;
      const int64_t count = std::min(axis.block, axis.length - begin) * axis.inner;
      LoadNumbers(plan.x, args.in[0], (o * axis.length + begin) * axis.inner, count, room);
      QuantiseMxBlock(plan.format, axis, o, b, room, y, static_cast<uint8_t*>(scales));
    }
  }
}

Status RunMx(const MxPlan& plan, const KernelArgs& args) {
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    ClearOutput(plan, args, static_cast<int>(2 * i + 1));
    RunAxis(plan, args, plan.axes[i], args.out[2 * i], args.out[2 * i + 1]);
  }
  return Status();
}

// ---- DynamicBlockMxQuant ----

// Tiles of 32 x 32 with one scale each, which both outputs of scales repeat.
struct MxTilePlan : MxConversion {
  MxAxis along, down;
  Workspace<float> tile;
};

Result<MxTilePlan> PlanMxTiles(const OpContext& op) {
  Check check(op);
  MxTilePlan plan;
  ReadConversion(check, op, 2, 3, plan);
  if (!check.ok()) return check.status();
  const Shape& x = op.in("x").shape;
  const int last = x.rank() - 1;
  plan.along = MxAxisOf(x, last, kMxBlock);
  plan.down = MxAxisOf(x, last - 1, kMxBlock);
  plan.outputs = {
      {plan.format.dtype, x}, ScaleType(x, last, kMxBlock), ScaleType(x, last - 1, kMxBlock)};
  plan.tile = plan.scratch.Floats(kMxBlock * kMxBlock);
  return check.Done(std::move(plan));
}

// The tile in row r and column c of the tiles of matrix m.
void RunTile(const MxTilePlan& plan, const KernelArgs& args, int64_t m, int64_t r, int64_t c) {
  float* tile = plan.tile(args);
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
  Workspace<float> room;
};

Result<MxGroupedPlan> PlanMxGrouped(const OpContext& op) {
  Check check(op);
  MxGroupedPlan plan;
  const auto [height, width] = check.Matrix("x", kFloats);
  plan.width = width;
  ReadConversion(check, op, 2, 2, plan);
  check.Only("blocksize", kMxBlock);
  plan.groups = check.Take(GroupRows::Of(op, "group_index", false, height));
  const Shape scales = {height / (2 * kMxBlock) + plan.groups.groups(), width, 2};
  plan.outputs = {{plan.format.dtype, op.in("x").shape}, {DataType::kFloat8E8M0, scales}};
  plan.room = plan.scratch.Floats(kMxBlock * width);
  return check.Done(std::move(plan));
}

Status RunMxGroup(const MxGroupedPlan& plan, const KernelArgs& args, int64_t group, int64_t begin,
                  int64_t end) {
  const int64_t width = plan.width, row_bits = width * BitsOf(plan.format.dtype);
  const MxAxis axis = {1, end - begin, width, kMxBlock};
  const int64_t pair = begin / (2 * kMxBlock) + group;
  auto* y = static_cast<std::byte*>(args.out[0]) + begin * row_bits / 8;
  auto* scales = static_cast<uint8_t*>(args.out[1]) + pair * width * 2;
  for (int64_t b = 0; b < axis.blocks(); ++b) {
    const int64_t first = begin + b * kMxBlock, rows = std::min(kMxBlock, end - first);
    LoadNumbers(plan.x, args.in[0], first * width, rows * width, plan.room(args));
    QuantiseMxBlock(plan.format, axis, 0, b, plan.room(args), y, scales);
  }
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

Result<AntiPlan> PlanAnti(const OpContext& op) {
  Check check(op);
  AntiPlan plan;
  const TensorType& x = op.in("x");
  check.RankAtLeast("x", kFloat8 | kFloat4, 1);
  const int axis = check.Axis("axis", x.shape.rank());
  if (!check.ok()) return check.status();
  check.TypeAndShape("mxscale", DataType::kFloat8E8M0, MxScaleShape(x.shape, axis, kMxBlock));
  CheckMxPacking(check, x.dtype, x.shape);
  plan.axis = MxAxisOf(x.shape, axis, kMxBlock);
  plan.from = x.dtype;
  plan.to = check.TypeOf("dst_type", kFloats);
  plan.outputs = {{plan.to, x.shape}};
  return check.Done(std::move(plan));
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
