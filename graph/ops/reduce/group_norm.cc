// GroupNorm, GroupNormV2, GroupNormSilu and GroupNormGrad.
#include "graph/ops/core/check.h"
#include "graph/ops/reduce/family.h"
#include "graph/ops/toolbox/rows/image_layout.h"
#include "graph/ops/toolbox/rows/norm_view.h"

namespace npumesh {
namespace {

// x by groups of channels. The layout is that of the graph's hints where there are some, because
// converters leave the attribute at its default; matrices, and operators without the attribute,
// have the channels second.
NormView ViewOf(const OpContext& op, bool has_format, Check& check) {
  const int slot = op.slot("x");
  const Shape& x = op.in(slot).shape;
  check.Keep(ExpectReal(op, "x"));
  bool last = false;
  if (has_format && x.rank() > 2) {
    last = check.Take(ChannelsLast(op, slot, op.attr_string("data_format")));
  }
  return check.Take(GroupView(op, x, last, op.attr_int("num_groups")));
}

void ExpectOneForEachChannel(const OpContext& op, std::string_view port, const NormView& view,
                             Check& check) {
  check.Keep(ExpectReal(op, port));
  check.Keep(ExpectCount(op, port, view.params, "channel"));
}

struct GroupNormForm {
  bool has_format = true;
  bool gives_rstd = false;  // not the variance
  bool silu = false;
};

template <GroupNormForm kForm>
NormPlan PlanGroupNorm(const OpContext& op, Check& check) {
  NormPlan plan;
  plan.view = ViewOf(op, kForm.has_format, check);
  ExpectOneForEachChannel(op, "gamma", plan.view, check);
  ExpectOneForEachChannel(op, "beta", plan.view, check);
  if (!check.ok()) return {};
  plan.epsilon = static_cast<double>(op.attr_float("eps"));
  plan.gives_rstd = kForm.gives_rstd;
  plan.silu = kForm.silu && op.attr_bool("activate_silu");
  const TensorType& x = op.in("x");
  const TensorType statistics = {x.dtype, {x.shape[0], op.attr_int("num_groups")}};
  plan.outputs = {x, statistics, statistics};
  return plan;
}

struct GroupNormGradPlan : NormPlan {
  bool dx = true, dgamma = true, dbeta = true;
};

GroupNormGradPlan PlanGroupNormGrad(const OpContext& op, Check& check) {
  check.Keep(ExpectAllReal(op));
  check.Keep(ExpectSameShape(op, "dy", "x"));
  GroupNormGradPlan plan;
  plan.view = ViewOf(op, true, check);
  ExpectOneForEachChannel(op, "gamma", plan.view, check);
  for (const std::string_view port : {"mean", "rstd"}) {
    check.Keep(ExpectCount(op, port, plan.view.statistics, "group of an image"));
  }
  plan.dx = op.attr_bool("dx_is_require");
  plan.dgamma = op.attr_bool("dgamma_is_require");
  plan.dbeta = op.attr_bool("dbeta_is_require");
  plan.outputs = {{op.in("dy").dtype, op.in("x").shape}, op.in("gamma"), op.in("gamma")};
  return plan;
}

// Inputs dy, mean, rstd, x, gamma. Outputs that are not required stay zero.
Status RunGroupNormGrad(const GroupNormGradPlan& plan, RealTensors& t) {
  NormGradient(plan.view, {t.in[0], t.in[3], t.in[1], t.in[2], t.in[4]},
               plan.dx ? &t.out[0] : nullptr, plan.dgamma ? &t.out[1] : nullptr,
               plan.dbeta ? &t.out[2] : nullptr, &t.room[0]);
  return Status();
}

}  // namespace

void RegisterGroupNormOps(OpRegistry& registry) {
  registry.Add(DefineReal<PlanGroupNorm<GroupNormForm{}>, RunNorm>(
      "GroupNorm(x, gamma, beta; num_groups:int, eps=0.0001, data_format=\"NHWC\", "
      "is_training=true) -> y, mean, variance"));
  registry.Add(DefineReal<PlanGroupNorm<GroupNormForm{.gives_rstd = true}>, RunNorm>(
      "GroupNormV2(x, gamma, beta; num_groups:int, eps=1e-05, data_format=\"NHWC\", "
      "is_training=true) -> y, mean, rstd"));
  registry.Add(DefineReal<PlanGroupNorm<GroupNormForm{.has_format = false, .silu = true}>, RunNorm>(
      "GroupNormSilu(x, gamma?, beta?; num_groups:int, eps=0.0001, activate_silu=true) -> y, mean, "
      "variance"));
  registry.Add(DefineReal<PlanGroupNormGrad, RunGroupNormGrad>(
      "GroupNormGrad(dy, mean, rstd, x, gamma; num_groups:int, data_format=\"NCHW\", "
      "dx_is_require=true, dgamma_is_require=true, dbeta_is_require=true) -> dx, dgamma, dbeta"));
}

}  // namespace npumesh
