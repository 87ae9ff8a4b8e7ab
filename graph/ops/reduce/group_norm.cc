// GroupNorm, GroupNormV2, GroupNormSilu, GroupNormSwish, GroupNormGrad and GroupNormSwishGrad.
#include "graph/ops/core/check.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/image_layout.h"
#include "graph/ops/toolbox/rows/norm_view.h"
#include "graph/ops/toolbox/values/activations.h"

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
  bool silu = false;        // attribute activate_silu
  bool swish = false;       // attributes activate_swish and swish_scale
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
  if (kForm.silu && op.attr_bool("activate_silu")) plan.swish = 1.0;
  if (kForm.swish && op.attr_bool("activate_swish")) {
    plan.swish = static_cast<double>(op.attr_float("swish_scale"));
  }
  const TensorType& x = op.in("x");
  const TensorType statistics = {x.dtype, {x.shape[0], op.attr_int("num_groups")}};
  plan.outputs = {x, statistics, statistics};
  return plan;
}

// ---- gradients ----

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
  plan.dgamma = op.attr_bool("dgamma_is_require");
  plan.dbeta = op.attr_bool("dbeta_is_require");
  plan.outputs = {{op.in("dy").dtype, op.in("x").shape}, op.in("gamma"), op.in("gamma")};
  return plan;
}

GroupNormGradPlan PlanPlainGrad(const OpContext& op, Check& check) {
  GroupNormGradPlan plan = PlanGroupNormGrad(op, check);
  plan.dx = op.attr_bool("dx_is_require");
  return plan;
}

GroupNormGradPlan PlanSwishGrad(const OpContext& op, Check& check) {
  GroupNormGradPlan plan = PlanGroupNormGrad(op, check);
  ExpectOneForEachChannel(op, "beta", plan.view, check);
  plan.swish = static_cast<double>(op.attr_float("swish_scale"));
  return plan;
}

// Inputs dy, mean, rstd, x, gamma, and beta where there is a swish, of which the gradient comes
// first. Outputs that are not required stay zero.
Status RunGroupNormGrad(const GroupNormGradPlan& plan, RealTensors& t) {
  const Reals &mean = t.in[1], &rstd = t.in[2], &x = t.in[3], &gamma = t.in[4];
  Reals& dy = plan.swish ? t.room[1] : t.in[0];
  if (plan.swish) {
    const double scale = *plan.swish;
    dy.resize(x.size());
    Normalise(plan.view, x, mean, rstd, gamma, t.in[5], &dy);
    for (size_t i = 0; i < dy.size(); ++i) {
      const double y = dy[i], sigmoid = Sigmoid(scale * y);
      dy[i] = t.in[0][i] * sigmoid * (1 + scale * y * (1 - sigmoid));
    }
  }
  NormGradient(plan.view, {dy, x, mean, rstd, gamma}, plan.dx ? &t.out[0] : nullptr,
               plan.dgamma ? &t.out[1] : nullptr, plan.dbeta ? &t.out[2] : nullptr, &t.room[0]);
  return Status();
}

}  // namespace

void RegisterGroupNormOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  registry.Add(DefineReal<PlanGroupNorm<GroupNormForm{}>, RunNorm>(
      "GroupNorm(x, gamma, beta; num_groups:int, eps=0.0001, data_format=\"NHWC\", "
      "is_training=true) -> y, mean, variance"));
  registry.Add(DefineReal<PlanGroupNorm<GroupNormForm{.gives_rstd = true}>, RunNorm>(
      "GroupNormV2(x, gamma, beta; num_groups:int, eps=1e-05, data_format=\"NHWC\", "
      "is_training=true) -> y, mean, rstd"));
  registry.Add(DefineReal<
               PlanGroupNorm<GroupNormForm{.has_format = false, .gives_rstd = true, .silu = true}>,
               RunNorm>(
      "GroupNormSilu(x, gamma?, beta?; num_groups:int, eps=0.0001, activate_silu=true) -> y, mean, "
      "rstd"));
  registry.Add(DefineReal<PlanGroupNorm<GroupNormForm{.gives_rstd = true, .swish = true}>, RunNorm>(
      "GroupNormSwish(x, gamma, beta; num_groups:int, data_format=\"NCHW\", eps=1e-05, "
      "activate_swish=true, swish_scale=1.0) -> y, mean, rstd"));
  registry.Add(DefineReal<PlanSwishGrad, RunGroupNormGrad>(
      "GroupNormSwishGrad(dy, mean, rstd, x, gamma, beta; num_groups:int, data_format=\"NCHW\", "
      "swish_scale=1.0, dgamma_is_require=true, dbeta_is_require=true) -> dx, dgamma, dbeta"));
  registry.Add(DefineReal<PlanPlainGrad, RunGroupNormGrad>(
      "GroupNormGrad(dy, mean, rstd, x, gamma; num_groups:int, data_format=\"NCHW\", "
      "dx_is_require=true, dgamma_is_require=true, dbeta_is_require=true) -> dx, dgamma, dbeta"));
}

}  // namespace npumesh
