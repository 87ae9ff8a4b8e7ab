// DynamicDualLevelMxQuant: MX quantisation of what was scaled before. Blocks of 512 values share a
// float32 scale, blocks of 32 among them a power of two; elements are float4_e2m1.
//
//   v      = x * smooth_scale, rounded to the type of x
//   level0 = max|v| / 6 over those of 512 values that are finite; 0 below 2^-126
//   t      = v / level0, rounded to the type of x; zeros stay
//   level1, y: MX quantisation of t (mx_block.h)
#include <algorithm>
#include <cmath>

#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/quant/mx_block.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

constexpr int64_t kLevel0 = 512;
constexpr float kLeastScale = 0x1p-126f;

struct DualPlan : Planned {
  InputRows x;
  MxFormat format;
  MxAxis axis;
  Factors smooth;
  Workspace<float> row, factors;
  Workspace<std::byte> narrow;
};

DualPlan PlanDual(const OpContext& op, Check& check) {
  DualPlan plan;
  check.RankBetween("x", TypeSet{DataType::kFloat16, DataType::kBfloat16}, 1, 7);
  check.Only("level0_block_size", kLevel0);
  check.Only("level1_block_size", kMxBlock);
  plan.format.dtype = DataType::kFloat4E2M1;
  plan.format.rounding =
      check.Meaning<MxRounding>("round_mode", {{"rint", MxRounding::kNearestEven},
                                               {"round", MxRounding::kNearestAway},
                                               {"floor", MxRounding::kFloor}});
  if (!check.ok()) return plan;
  const Shape& x = op.in("x").shape;
  CheckPacking(check, plan.format.dtype, x);
  plan.x = InputRows::Of(check, op, "x");
  plan.axis = MxAxisOf(x, x.rank() - 1);
  plan.smooth = FactorsOf(check, op, "smooth_scale", {plan.x.width});
  if (plan.smooth.given()) check.SameType("smooth_scale", "x");
  plan.outputs = {{plan.format.dtype, x},
                  {DataType::kFloat, WithLast(x, CeilDiv(plan.x.width, kLevel0))},
                  MxScaleType(x, x.rank() - 1)};
  plan.scratch.Take(plan.x.width, {&plan.row, &plan.factors});
  plan.narrow = plan.scratch.Take<std::byte>(plan.x.width * BitsOf(plan.x.dtype) / 8);
  return plan;
}

// Divides a block by its scale, which it returns.
float ScaleBlock(const DualPlan& plan, const KernelArgs& args, int64_t count, float* values) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(values[i])) most = std::max(most, std::fabs(values[i]));
  }
  float scale = most * (1.0f / 6.0f);
  if (scale < kLeastScale) scale = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] != 0) values[i] /= scale;
  }
  RoundRow(plan.x.dtype, values, count, plan.narrow(args), values);
  return scale;
}

Status RunDual(const DualPlan& plan, const KernelArgs& args) {
  ClearOutput(plan, args, 2);
  const int64_t width = plan.x.width;
  float *row = plan.row(args), *factors = plan.factors(args);
  auto* level0 = static_cast<float*>(args.out[1]);
  if (plan.smooth.given()) plan.smooth.Load(args, 0, width, factors);
  for (int64_t r = 0; r < plan.x.count; ++r) {
    plan.x.Load(args, r, row);
    if (plan.smooth.given()) {
      MultiplyRow(row, factors, width, row);
      RoundRow(plan.x.dtype, row, width, plan.narrow(args), row);
    }
    for (int64_t begin = 0; begin < width; begin += kLevel0) {
      *level0++ = ScaleBlock(plan, args, std::min(kLevel0, width - begin), row + begin);
    }
    QuantiseMxRow(plan.format, plan.axis, r, row, args.out[0], args.out[2]);
  }
  return Status();
}

}  // namespace

void RegisterDualLevelQuantOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanDual, RunDual>(
      "DynamicDualLevelMxQuant(x, smooth_scale?; round_mode=\"rint\", level0_block_size=512, "
      "level1_block_size=32) -> y, level0_scale, level1_scale"));
}

}  // namespace npumesh
