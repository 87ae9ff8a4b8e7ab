// SwigluMxQuant: a gated activation whose result is quantised in MX blocks, without a rounding in
// between.
#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/quant/mx_block.h"
#include "graph/ops/toolbox/rows/group_list.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/gated_unit.h"

namespace npumesh {
namespace {

struct SwigluMxPlan : Planned {
  GatedUnit unit;
  MxFormat format;
  GroupRows groups;
  InputRows x;
  MxAxis axis;  // of y
  Workspace<float> row, z;
};

// Only the last dimension is halved and quantised.
void CheckAttributes(Check& check, const OpContext& op) {
  const int rank = op.in("x").shape.rank();
  for (const std::string_view attr : {"activate_dim", "axis"}) {
    const int axis = check.Axis(attr, rank);
    check.Supported(axis == rank - 1, "{} is {}, expected the last dimension", attr, axis);
  }
  const int64_t mode = op.attr_int("swiglu_mode");
  const float largest = op.attr_float("max_dtype_value");
  check.Supported(mode >= 0 && mode <= 2, "swiglu_mode is {}, expected 0 to 2", mode);
  check.Only("group_mode", 0);
  check.Supported(largest == 0, "max_dtype_value is {}, expected 0", largest);
}

SwigluMxPlan PlanSwigluMx(const OpContext& op, Check& check) {
  SwigluMxPlan plan;
  check.RankAtLeast("x", kFloats, 1);
  CheckAttributes(check, op);
  if (!check.ok()) return plan;
  const TensorType& x = op.in("x");
  const int last = x.shape.rank() - 1;
  check.That(x.shape[last] % 2 == 0, "x is {}, expected a last dimension that can be halved", x);
  const Shape y = WithLast(x.shape, x.shape[last] / 2);
  plan.x = InputRows::Of(check, op, "x");
  plan.unit = GatedUnit::Of(op);
  plan.format = MxFormatOf(check, op, y);
  plan.axis = MxAxisOf(y, last);
  plan.groups = check.Take(GroupRows::Of(op, "group_index", true, plan.axis.outer));
  plan.outputs = {{plan.format.dtype, y}, MxScaleType(y, last)};
  plan.row = plan.scratch.Floats(plan.x.width);
  plan.z = plan.scratch.Floats(plan.axis.length);
  return plan;
}

Status RunRows(const SwigluMxPlan& plan, const KernelArgs& args, int64_t, int64_t begin,
               int64_t end) {
  const int64_t n = plan.axis.length;
  float *row = plan.row(args), *z = plan.z(args);
  for (int64_t r = begin; r < end; ++r) {
    plan.x.Load(args, r, row);
    plan.unit.Apply(row, row + n, n, z);
    QuantiseMxRow(plan.format, plan.axis, r, z, args.out[0], args.out[1]);
  }
  return Status();
}

// Rows after the last group are unspecified; they are zeros here.
Status RunSwigluMx(const SwigluMxPlan& plan, const KernelArgs& args) {
  ClearOutputs(plan, args);
  return plan.groups.Run(plan, args, RunRows).status();
}

}  // namespace

void RegisterSwigluMxOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanSwigluMx, RunSwigluMx>(
      "SwigluMxQuant(x, group_index?; activate_dim=-1, activate_left=false, swiglu_mode=0, "
      "clamp_limit=7.0, glu_alpha=1.702, glu_bias=1.0, group_mode=0, axis=-1, dst_type=40, "
      "round_mode=\"rint\", scale_alg=0, max_dtype_value=0.0) -> y, mxscale"));
}

}  // namespace npumesh
