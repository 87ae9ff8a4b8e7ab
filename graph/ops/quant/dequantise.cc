// AscendDequant, DequantBias, AscendAntiQuantV2, AscendAntiQuant and TransQuantParamV2.
#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
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

template <bool kBias>  // DequantBias
DequantPlan PlanDequant(const OpContext& op, Check& check) {
  DequantPlan plan;
  ReadRows(check, op, DataType::kInt32, kBias ? "output_dtype" : "dtype", plan);
  const int64_t columns = plan.x.width;
  Dequant& dequant = plan.dequant;
  dequant.scale = FactorsOf(check, op, kBias ? "weight_scale" : "deq_scale", {1, columns});
  if constexpr (kBias) {
    dequant.row_scale = FactorsOf(check, op, "activate_scale", {1, plan.x.count});
    ReadBias(check, op, dequant, {1, columns});
  } else {
    dequant.twice = op.attr_bool("sqrt_mode");
    dequant.relu = op.attr_bool("relu_flag");
  }
  plan.factors = plan.scratch.Floats(columns);
  return plan;
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

// The steps of Dequant::Apply.
template <bool kBias>
void LoopDequant(const OpContext& op, LoopBuilder& loop) {
  Check check(op);
  const DequantPlan plan = PlanDequant<kBias>(op, check);
  if (!check.ok()) return;
  const auto& [before, scale, row_scale, after, twice, relu] = plan.dequant;
  LoopValue y = loop.In(plan.x.slot);
  if (before.given()) {
    const Shape& bias = op.in(before.slot()).shape;
    if (bias.rank() == 0 || bias.dims().back() != bias.elements()) return;
    y = loop.Emit(LoopOp::kAdd, {y, loop.In(before.slot())});
  }
  y = loop.As(LoopType::kFloat, y);
  if (scale.given()) {
    const LoopValue factor = LoopColumns(op, loop, scale.slot());
    y = loop.Emit(LoopOp::kMul, {y, factor});
    if (twice) y = loop.Emit(LoopOp::kMul, {y, factor});
  }
  if (row_scale.given()) {  // one for all, or under the shape that broadcasts to x
    const Shape seen = row_scale.count() == 1 ? Shape({1}) : WithLast(op.in("x").shape, 1);
    y = loop.Emit(LoopOp::kMul, {y, loop.Factor(row_scale.slot(), seen)});
  }
  y = LoopWith(op, loop, LoopOp::kAdd, y, after);
  if (relu) {  // not kRelu, which gives 0 of -0
    const LoopValue zero = loop.Constant(0);
    y = loop.Emit(LoopOp::kSelect, {loop.Emit(LoopOp::kLess, {y, zero}), zero, y});
  }
  loop.Give(y);
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

template <bool kInputs>  // AscendAntiQuantV2, whose scale and offset are inputs
AntiQuantPlan PlanAntiQuant(const OpContext& op, Check& check) {
  AntiQuantPlan plan;
  ReadRows(check, op, kQuantised, kInputs ? "dst_type" : "dtype", plan);
  CheckPacking(check, op.in("x").dtype, op.in("x").shape);
  plan.squared = op.attr_bool("sqrt_mode");
  if constexpr (kInputs) {
    plan.scale = FactorsOf(check, op, "scale", {1, plan.x.width});
    plan.offset = FactorsOf(check, op, "offset", {1, plan.x.width});
  } else {
    plan.scale_value = op.attr_float("scale");
    plan.offset_value = op.attr_float("offset");
  }
  plan.scratch.Take(plan.x.width, {&plan.scales, &plan.offsets});
  return plan;
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

template <bool kInputs>
void LoopAntiQuant(const OpContext& op, LoopBuilder& loop) {
  Check check(op);
  const AntiQuantPlan plan = PlanAntiQuant<kInputs>(op, check);
  if (!check.ok()) return;
  const auto factor = [&](const Factors& factors, float value) {
    return factors.given() ? LoopColumns(op, loop, factors.slot())
                           : loop.Constant(static_cast<double>(value));
  };
  LoopValue scale = factor(plan.scale, plan.scale_value);
  const LoopValue offset = factor(plan.offset, plan.offset_value);
  if (plan.squared) scale = loop.Emit(LoopOp::kMul, {scale, scale});
  const LoopValue x = loop.As(LoopType::kFloat, loop.In(plan.x.slot));
  loop.Give(loop.Emit(LoopOp::kMul, {loop.Emit(LoopOp::kAdd, {x, offset}), scale}));
}

// ---- TransQuantParamV2 ----

struct ParamPlan : Planned {
  Factors scale, offset;
  bool rounds = false;
  int64_t count = 0;
};

ParamPlan PlanTransParam(const OpContext& op, Check& check) {
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
  return plan;
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
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanDequant<false>, RunDequant>(
      "AscendDequant(x, deq_scale; sqrt_mode=false, relu_flag=false, dtype=0) -> y",
      {.loop = LoopDequant<false>}));
  registry.Add(Define<PlanDequant<true>, RunDequant>(
      "DequantBias(x, weight_scale, activate_scale?, bias?; output_dtype:int) -> y",
      {.loop = LoopDequant<true>}));
  registry.Add(Define<PlanAntiQuant<true>, RunAntiQuant>(
      "AscendAntiQuantV2(x, scale, offset?; dst_type=1, sqrt_mode=false) -> y",
      {.loop = LoopAntiQuant<true>}));
  registry.Add(Define<PlanAntiQuant<false>, RunAntiQuant>(
      "AscendAntiQuant(x; scale:float, offset:float, dtype=0, sqrt_mode=false) -> y",
      {.loop = LoopAntiQuant<false>}));
  registry.Add(Define<PlanTransParam, RunTransParam>(
      "TransQuantParamV2(scale, offset?; round_mode=0) -> y"));
}

}  // namespace npumesh
