// AscendDequant, DequantBias, AscendAntiQuantV2, AscendAntiQuant and TransQuantParamV2.
#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/quant/family.h"
#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// Rows of integers that become floats.
struct RowsPlan : Planned {
  InputRows x;
  DataType to = DataType::kFloat;
  Workspace<float> row;
};

// Reads x and the attribute with the type of y.
void ReadRows(Check& check, const OpContext& op, TypeSet from, std::string_view attribute,
              RowsPlan& plan) {
  check.RankAtLeast("x", from, 1);
  plan.to = check.TypeOf(attribute, kFloats, Code::kInvalidArgument);
  if (!check.ok()) return;
  plan.x = InputRows::Of(check, op, "x");
  plan.outputs = {{plan.to, op.in("x").shape}};
  plan.row = plan.scratch.Floats(plan.x.width);
}

// ---- AscendDequant, DequantBias ----

struct DequantPlan : RowsPlan {
  Dequant dequant;
  Workspace<float> factors;
};

Result<DequantPlan> PlanDequant(const OpContext& op) {
  Check check(op);
  DequantPlan plan;
  ReadRows(check, op, DataType::kInt32, "dtype", plan);
  plan.dequant.scale = FactorsOf(check, op, "deq_scale", {1, plan.x.width});
  plan.dequant.twice = op.attr_bool("sqrt_mode");
  plan.dequant.relu = op.attr_bool("relu_flag");
  plan.factors = plan.scratch.Floats(plan.x.width);
  return check.Done(std::move(plan));
}

Result<DequantPlan> PlanDequantBias(const OpContext& op) {
  Check check(op);
  DequantPlan plan;
  ReadRows(check, op, DataType::kInt32, "output_dtype", plan);
  plan.dequant.scale = FactorsOf(check, op, "weight_scale", {1, plan.x.width});
  plan.dequant.row_scale = FactorsOf(check, op, "activate_scale", {1, plan.x.count});
  ReadBias(check, op, plan.dequant, {1, plan.x.width});
  plan.factors = plan.scratch.Floats(plan.x.width);
  return check.Done(std::move(plan));
}

Status RunDequant(const DequantPlan& plan, const KernelArgs& args) {
  const int64_t columns = plan.x.width;
  float* row = plan.row(args);
  const auto* x = static_cast<const int32_t*>(args.in[0]);
  for (int64_t r = 0; r < plan.x.count; ++r, x += columns) {
    plan.dequant.Apply(args, {r, 0, columns, x, nullptr}, plan.factors(args), row);
    StoreRow(plan.to, row, args.out[0], r * columns, columns);
  }
  return Status();
}

// A factor that is one for all or one for each row, under the shape that broadcasts to x; nullopt:
// x has other rows.
std::optional<Shape> SeenByRows(const OpContext& op, int slot) {
  const Shape& x = op.in("x").shape;
  const int64_t count = op.in(slot).shape.elements();
  if (count == 1) return Shape({1});
  if (ElementsBetween(x, 0, x.rank() - 1) != count) return std::nullopt;
  return WithLast(x, 1);
}

// Whether an input broadcasts as its elements along the columns do.
bool IsColumns(const OpContext& op, int slot) {
  const Shape& shape = op.in(slot).shape;
  return shape.rank() > 0 && shape.dims().back() == shape.elements();
}

// The steps of Dequant::Apply. Slots are -1 where there is no factor.
void LoopDequantOf(const OpContext& op, LoopBuilder& loop, int scale, int row_scale, int bias,
                   bool twice, bool relu) {
  LoopValue y = loop.In(op.slot("x"));
  const bool whole_bias = bias >= 0 && op.in(bias).dtype == DataType::kInt32;
  if (whole_bias && !IsColumns(op, bias)) return;
  if (whole_bias) y = loop.Emit(LoopOp::kAdd, {y, loop.In(bias)});
  y = loop.As(LoopType::kFloat, y);
  if (scale >= 0) {
    const LoopValue factor = LoopColumns(op, loop, scale);
    y = loop.Emit(LoopOp::kMul, {y, factor});
    if (twice) y = loop.Emit(LoopOp::kMul, {y, factor});
  }
  if (row_scale >= 0) {
    const std::optional<Shape> seen = SeenByRows(op, row_scale);
    if (!seen) return;
    y = loop.Emit(LoopOp::kMul, {y, loop.Factor(row_scale, *seen)});
  }
  if (bias >= 0 && !whole_bias) {
    y = loop.Emit(LoopOp::kAdd, {y, LoopColumns(op, loop, bias)});
  }
  if (relu) {  // not kRelu, which gives 0 of -0
    const LoopValue zero = loop.Constant(0);
    y = loop.Emit(LoopOp::kSelect, {loop.Emit(LoopOp::kLess, {y, zero}), zero, y});
  }
  loop.Give(y);
}

void LoopDequant(const OpContext& op, LoopBuilder& loop) {
  LoopDequantOf(op, loop, SlotIfFed(op, "deq_scale"), -1, -1, op.attr_bool("sqrt_mode"),
                op.attr_bool("relu_flag"));
}

void LoopDequantBias(const OpContext& op, LoopBuilder& loop) {
  LoopDequantOf(op, loop, SlotIfFed(op, "weight_scale"), SlotIfFed(op, "activate_scale"),
                SlotIfFed(op, "bias"), false, false);
}

// ---- AscendAntiQuantV2, AscendAntiQuant ----

// y = (x + offset) * scale
struct AntiQuantPlan : RowsPlan {
  Factors scale, offset;
  float scale_value = 1;  // where there is no input for it
  float offset_value = 0;
  bool squared = false;
  Workspace<float> scales, offsets;
};

AntiQuantPlan AntiQuantOf(Check& check, const OpContext& op, std::string_view attribute) {
  AntiQuantPlan plan;
  ReadRows(check, op, kQuantised, attribute, plan);
  CheckPacking(check, op.in("x").dtype, op.in("x").shape);
  plan.squared = op.attr_bool("sqrt_mode");
  plan.scratch.Take(plan.x.width, {&plan.scales, &plan.offsets});
  return plan;
}

Result<AntiQuantPlan> PlanAntiQuant(const OpContext& op) {
  Check check(op);
  AntiQuantPlan plan = AntiQuantOf(check, op, "dtype");
  plan.scale_value = op.attr_float("scale");
  plan.offset_value = op.attr_float("offset");
  return check.Done(std::move(plan));
}

Result<AntiQuantPlan> PlanAntiQuantV2(const OpContext& op) {
  Check check(op);
  AntiQuantPlan plan = AntiQuantOf(check, op, "dst_type");
  plan.scale = FactorsOf(check, op, "scale", {1, plan.x.width});
  plan.offset = FactorsOf(check, op, "offset", {1, plan.x.width});
  return check.Done(std::move(plan));
}

// `value` for all columns when there are no factors.
void LoadColumnsOr(const KernelArgs& args, const Factors& factors, float value, int64_t columns,
                   float* to) {
  if (factors.given()) {
    LoadColumns(args, factors, 0, columns, to);
  } else {
    std::fill_n(to, columns, value);
  }
}

Status RunAntiQuant(const AntiQuantPlan& plan, const KernelArgs& args) {
  const int64_t columns = plan.x.width;
  float *row = plan.row(args), *scale = plan.scales(args), *offset = plan.offsets(args);
  LoadColumnsOr(args, plan.scale, plan.scale_value, columns, scale);
  LoadColumnsOr(args, plan.offset, plan.offset_value, columns, offset);
  for (int64_t i = 0; plan.squared && i < columns; ++i) scale[i] *= scale[i];
  for (int64_t r = 0; r < plan.x.count; ++r) {
    plan.x.Load(args, r, row);
    for (int64_t i = 0; i < columns; ++i) row[i] = (row[i] + offset[i]) * scale[i];
    StoreRow(plan.to, row, args.out[0], r * columns, columns);
  }
  return Status();
}

void LoopAntiQuantOf(const OpContext& op, LoopBuilder& loop, LoopValue scale, LoopValue offset) {
  if (op.attr_bool("sqrt_mode")) scale = loop.Emit(LoopOp::kMul, {scale, scale});
  const LoopValue x = loop.As(LoopType::kFloat, loop.In(op.slot("x")));
  loop.Give(loop.Emit(LoopOp::kMul, {loop.Emit(LoopOp::kAdd, {x, offset}), scale}));
}

void LoopAntiQuant(const OpContext& op, LoopBuilder& loop) {
  const auto constant = [&](std::string_view attribute) {
    return loop.Constant(static_cast<double>(op.attr_float(attribute)));
  };
  LoopAntiQuantOf(op, loop, constant("scale"), constant("offset"));
}

void LoopAntiQuantV2(const OpContext& op, LoopBuilder& loop) {
  const auto factor = [&](std::string_view port, double otherwise) {
    const int slot = SlotIfFed(op, port);
    return slot < 0 ? loop.Constant(otherwise) : LoopColumns(op, loop, slot);
  };
  LoopAntiQuantOf(op, loop, factor("scale", 1), factor("offset", 0));
}

// ---- TransQuantParamV2 ----

struct ParamPlan : Planned {
  Factors scale, offset;
  bool rounds = false;
  int64_t count = 0;
};

Result<ParamPlan> PlanTransParam(const OpContext& op) {
  Check check(op);
  ParamPlan plan;
  plan.offset = check.Take(Factors::Of(op, "offset"));
  check.Type("scale", DataType::kFloat);
  check.Type("offset", DataType::kFloat);
  plan.scale = check.Take(Factors::OfSlot(op, op.slot("scale")));
  const int64_t scales = op.in("scale").shape.elements(), offsets = plan.offset.count();
  check.That(offsets <= 1 || scales == 1 || offsets == scales,
             "scale is {} and offset has {} elements; expected equal counts, or one",
             op.in("scale"), offsets);
  const Shape& y = op.in(offsets > std::max<int64_t>(scales, 1) ? "offset" : "scale").shape;
  plan.rounds = op.attr_int("round_mode") == 1;
  plan.count = y.elements();
  plan.outputs = {{DataType::kUint64, y}};
  return check.Done(std::move(plan));
}

// The packed form of a scale and an offset: the scale's bits below, 9 bits of offset at 37, a mark
// at 46.
uint64_t PackedScale(float scale, float offset, bool rounds) {
  constexpr uint32_t kDropped = (1u << 13) - 1;
  auto bits = std::bit_cast<uint32_t>(scale);
  if (rounds) bits += kDropped / 2 + (bits >> 13 & 1);
  bits &= ~kDropped;
  const float clipped = std::clamp(std::nearbyint(offset), -256.0f, 255.0f);
  const auto nine = static_cast<uint64_t>(static_cast<int64_t>(clipped)) & 0x1ff;
  return uint64_t{1} << 46 | nine << 37 | bits;
}

Status RunTransParam(const ParamPlan& plan, const KernelArgs& args) {
  auto* y = static_cast<uint64_t*>(args.out[0]);
  const Factors &scale = plan.scale, &offset = plan.offset;
  for (int64_t i = 0; i < plan.count; ++i) {
    y[i] = PackedScale(scale.For(args, i, 1.0f), offset.For(args, i, 0.0f), plan.rounds);
  }
  return Status();
}

}  // namespace

void RegisterDequantiseOps(OpRegistry& registry) {
  registry.Add(Define<PlanDequant, RunDequant>(
      "AscendDequant(x, deq_scale; sqrt_mode=false, relu_flag=false, dtype=0) -> y",
      {.loop = LoopDequant}));
  registry.Add(Define<PlanDequantBias, RunDequant>(
      "DequantBias(x, weight_scale, activate_scale?, bias?; output_dtype:int) -> y",
      {.loop = LoopDequantBias}));
  registry.Add(Define<PlanAntiQuantV2, RunAntiQuant>(
      "AscendAntiQuantV2(x, scale, offset?; dst_type=1, sqrt_mode=false) -> y",
      {.loop = LoopAntiQuantV2}));
  registry.Add(Define<PlanAntiQuant, RunAntiQuant>(
      "AscendAntiQuant(x; scale:float, offset:float, dtype=0, sqrt_mode=false) -> y",
      {.loop = LoopAntiQuant}));
  registry.Add(Define<PlanTransParam, RunTransParam>(
      "TransQuantParamV2(scale, offset?; round_mode=0) -> y"));
}

}  // namespace npumesh
