// GeluQuant, GroupQuant and QuantMax: element-wise formulas, and their results quantised.
#include <algorithm>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/copy/block_operand.h"
#include "graph/ops/toolbox/lanes/lane_table.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/quantised_row.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// ---- GeluQuant ----

struct GeluPlan : Planned {
  LaneFn formula = nullptr;
  bool dynamic = true;
  InputRows x;
  DataType dtype = DataType::kInt8;
  Rounding rounding = Rounding::kNearest;
  Factors scale, offset;
  Workspace<float> row, room;
};

GeluPlan PlanGelu(const OpContext& op, Check& check) {
  GeluPlan plan;
  check.RankAtLeast("x", kFloats, 1);
  check.OneOf("approximate", {"none", "tanh"});
  check.OneOf("quant_mode", {"dynamic", "static"});
  if (!check.ok()) return plan;
  plan.x = InputRows::Of(check, op, "x");
  const Shape& x = op.in("x").shape;
  const bool tanh = op.attr_string("approximate") == "tanh";
  plan.formula = FindLanes(tanh ? LoopOp::kGeluTanh : LoopOp::kGeluErf, LoopType::kFloat);
  plan.dynamic = op.attr_string("quant_mode") == "dynamic";
  plan.dtype = check.TypeOf("dst_type", kNarrow);
  plan.rounding = check.Take(RoundingOf(op, "round_mode"));
  CheckPacking(check, plan.dtype, x);
  plan.scale = FactorsOf(check, op, "input_scale", {1, plan.x.width});
  plan.offset = FactorsOf(check, op, "input_offset", {1, plan.x.width});
  check.That(!plan.dynamic || !plan.offset.given(), "quant_mode dynamic takes no input_offset");
  check.That(plan.dynamic || plan.scale.given(), "quant_mode static needs input_scale");
  plan.outputs = {{plan.dtype, x}, {DataType::kFloat, WithoutLast(x)}};
  plan.scratch.Take(plan.x.width, {&plan.row, &plan.room});
  return plan;
}

void Activate(LaneFn formula, float* row, int64_t width) {
  constexpr auto kBlock = static_cast<int64_t>(kBlockElements);
  for (int64_t first = 0; first < width; first += kBlock) {
    const void* in[] = {row + first};
    formula(in, row + first, static_cast<size_t>(std::min(kBlock, width - first)), {});
  }
}

Status RunGelu(const GeluPlan& plan, const KernelArgs& args) {
  const int64_t width = plan.x.width;
  float* row = plan.row(args);
  auto* scales = static_cast<float*>(args.out[1]);
  const float largest = LargestNarrow(plan.dtype);
  for (int64_t r = 0; r < plan.x.count; ++r) {
    plan.x.Load(args, r, row);
    Activate(plan.formula, row, width);
    ScaleColumns(args, plan.scale, plan.offset, 0, width, plan.room(args), row);
    scales[r] = 0;
    if (plan.dynamic) {
      scales[r] =
          QuantiseRow(plan.dtype, plan.rounding, largest, row, width, args.out[0], r * width);
    } else {
      StoreNarrow(plan.dtype, plan.rounding, row, args.out[0], r * width, width);
    }
  }
  return Status();
}

void LoopGelu(const OpContext& op, LoopBuilder& loop) {
  Check check(op);
  const GeluPlan plan = PlanGelu(op, check);
  if (!check.ok() || !SpansRows(op, "x", loop)) return;
  const bool tanh = op.attr_string("approximate") == "tanh";
  LoopValue row = loop.Emit(tanh ? LoopOp::kGeluTanh : LoopOp::kGeluErf, {loop.In(plan.x.slot)});
  row = LoopWith(op, loop, LoopOp::kMul, row, plan.scale);
  row = LoopWith(op, loop, LoopOp::kAdd, row, plan.offset);
  LoopQuantised y = {-1, loop.Constant(0)};
  if (plan.dynamic) {
    y = LoopQuantiseRow(loop, plan.dtype, plan.rounding, row);
  } else {
    y.row = LoopIntegers(loop, plan.dtype, plan.rounding, row);
  }
  loop.Give(0, y.row);
  loop.Give(1, y.scale);
}

// ---- GroupQuant ----

struct GroupPlan : Planned {
  InputRows x;
  DataType dtype = DataType::kInt8;
  Factors scale, offset;
  GroupRows groups;
  Workspace<float> row, scales;
};

GroupPlan PlanGroup(const OpContext& op, Check& check) {
  GroupPlan plan;
  const auto [height, width] = check.Matrix("x", kFloats);
  plan.x = InputRows::Of(check, op, "x");
  plan.dtype = check.TypeOf("dst_type", kQuantised);
  CheckPacking(check, plan.dtype, op.in("x").shape);
  plan.groups = check.Take(GroupRows::Of(op, "group_index", false, height));
  plan.scale = check.Take(Factors::Of(op, "scale"));
  plan.offset = FactorsOf(check, op, "offset", {1});
  check.Shape("scale", {plan.groups.groups(), width});
  plan.outputs = {{plan.dtype, op.in("x").shape}};
  plan.scratch.Take(width, {&plan.row, &plan.scales});
  return plan;
}

// Rows after the last group are zero.
Status RunGroup(const GroupPlan& plan, const KernelArgs& args) {
  const int64_t width = plan.x.width;
  float *row = plan.row(args), *scale = plan.scales(args);
  const float offset = plan.offset.For(args, 0, 0.0f);
  const auto quantise = [&](int64_t group, int64_t begin, int64_t end) {
    plan.scale.Load(args, group * width, width, scale);
    for (int64_t r = begin; r < end; ++r) {
      plan.x.Load(args, r, row);
      for (int64_t i = 0; i < width; ++i) row[i] = row[i] * scale[i] + offset;
      StoreIntegers(plan.dtype, Rounding::kNearest, row, args.out[0], r * width, width);
    }
  };
  ClearOutputs(plan, args);
  return plan.groups.ForEach(args, quantise).status();
}

// ---- QuantMax ----

struct MaxPlan : Planned {
  DataType from = DataType::kFloat, to = DataType::kFloat8E5M2;
  int64_t elements = 0;
};

MaxPlan PlanMax(const OpContext& op, Check& check) {
  MaxPlan plan;
  const TensorType& x = op.in("x");
  check.RankAtLeast("x", kFloats, 1);
  check.Type("scale", DataType::kFloat);
  check.Elements("scale", {1});
  check.Keep(RoundingOf(op, "round_mode").status());
  plan.from = x.dtype;
  plan.to = check.TypeOf("dst_type", kNarrow);
  check.That(!kQuantised.Contains(plan.to), "dst_type is {}, expected an 8-bit float",
             Name(plan.to));
  plan.elements = x.shape.elements();
  plan.outputs = {{plan.to, x.shape}, {x.dtype, {1}}};
  return plan;
}

Status RunMax(const MaxPlan& plan, const KernelArgs& args) {
  constexpr int64_t kBlock = 512;
  float row[kBlock];
  const float scale = *static_cast<const float*>(args.in[1]);
  float most = 0;
  for (int64_t first = 0; first < plan.elements; first += kBlock) {
    const int64_t count = std::min(kBlock, plan.elements - first);
    LoadNumbers(plan.from, args.in[0], first, count, row);
    most = std::max(most, LargestMagnitude(row, count));
    ScaleRow(row, scale, count, row);
    StoreNarrow(plan.to, Rounding::kNearest, row, args.out[0], first, count);
  }
  StoreRow(plan.from, &most, args.out[1], 0, 1);
  return Status();
}

}  // namespace

void RegisterActivationQuantOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanGelu, RunGelu>(
      "GeluQuant(x, input_scale?, input_offset?; approximate=\"none\", quant_mode=\"dynamic\", "
      "dst_type=2, round_mode=\"rint\") -> y, out_scale",
      {.loop = LoopGelu}));
  registry.Add(
      Define<PlanGroup, RunGroup>("GroupQuant(x, scale, group_index, offset?; dst_type=2) -> y"));
  registry.Add(
      Define<PlanMax, RunMax>("QuantMax(x, scale; round_mode=\"rint\", dst_type=35) -> y, amax"));
}

}  // namespace npumesh
