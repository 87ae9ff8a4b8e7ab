// SwiGluQuant: the gated activation of a feed-forward layer, quantised, with scales for each group
// of rows.
//
//   z = silu(gate) * other * smooth_scales
//   static: y = round(z + offsets);  dynamic: scale = most / max|z|, y = round(z * scale)
//
// The scale of a row is a factor here, not a divisor as that of DynamicQuant is; a row of zeros has
// an infinite one. A static call leaves zeros for scales.
#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/gated_unit.h"
#include "graph/ops/toolbox/values/quantised_row.h"

namespace npumesh {
namespace {

struct SwigluQuantPlan : Planned {
  InputRows x;
  int64_t columns = 0;  // of y
  GroupRows groups;
  Factors smooth, offsets;  // [groups, columns], [groups] or one
  bool dynamic = true;
  GatedUnit unit;
  DataType dtype = DataType::kInt8;
  Workspace<float> row, z, room;
};

SwigluQuantPlan PlanSwigluQuant(const OpContext& op, Check& check) {
  SwigluQuantPlan plan;
  check.RankAtLeast("x", kFloats, 1);
  check.OneOf("quant_mode", {"static", "dynamic"});
  const bool counts = check.Between("group_list_type", 0, 1) == 1;
  plan.dtype = check.TypeOf("dst_type", kQuantised);
  if (!check.ok()) return plan;
  plan.x = InputRows::Of(check, op, "x");
  check.That(plan.x.width % 2 == 0, "the last dimension of x {} cannot be halved", op.in("x"));
  plan.columns = plan.x.width / 2;
  plan.groups = check.Take(GroupRows::Of(op, "group_index", counts, plan.x.count));
  const int64_t groups = plan.groups.groups(), all = groups * plan.columns;
  plan.smooth = FactorsOf(check, op, "smooth_scales", {1, groups, all});
  plan.offsets = FactorsOf(check, op, "offsets", {1, groups, all});
  plan.dynamic = op.attr_string("quant_mode") == "dynamic";
  plan.unit.left_is_gate = op.attr_bool("activate_left");
  const Shape y = WithLast(op.in("x").shape, plan.columns);
  CheckPacking(check, plan.dtype, y);
  plan.outputs = {{plan.dtype, y}, {DataType::kFloat, WithoutLast(y)}};
  plan.row = plan.scratch.Floats(plan.x.width);
  plan.scratch.Take(plan.columns, {&plan.z, &plan.room});
  return plan;
}

// Gives row `row` of y, and its scale.
float QuantiseGated(const SwigluQuantPlan& plan, const KernelArgs& args, int64_t group,
                    int64_t row) {
  const int64_t n = plan.columns, groups = plan.groups.groups();
  float *x = plan.row(args), *z = plan.z(args);
  plan.x.Load(args, row, x);
  plan.unit.Apply(x, x + n, n, z);
  const Factors smooth = plan.smooth.Part(group, groups);
  const Factors offsets = plan.dynamic ? Factors() : plan.offsets.Part(group, groups);
  ScaleColumns(args, smooth, offsets, 0, n, plan.room(args), z);
  float scale = 0;
  if (plan.dynamic) {
    const float most = LargestMagnitude(z, n);
    scale = LargestOf(plan.dtype) / most;
    for (int64_t i = 0; i < n; ++i) z[i] = most == 0 ? 0.0f : z[i] * scale;
  }
  StoreIntegers(plan.dtype, Rounding::kNearest, z, args.out[0], row * n, n);
  return scale;
}

// Rows after the last group are zeros.
Status RunSwigluQuant(const SwigluQuantPlan& plan, const KernelArgs& args) {
  ClearOutputs(plan, args);
  auto* const scales = static_cast<float*>(args.out[1]);
  return plan.groups
      .ForEach(args,
               [&](int64_t group, int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   scales[row] = QuantiseGated(plan, args, group, row);
                 }
               })
      .status();
}

}  // namespace

void RegisterSwigluQuantOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanSwigluQuant, RunSwigluQuant>(
      "SwiGluQuant(x, smooth_scales?, offsets?, group_index?; activate_left=false, "
      "quant_mode=\"dynamic\", group_list_type=0, dst_type=2) -> y, scale"));
}

}  // namespace npumesh
