// Gradients of normalisation by channel: BatchNormGradV3, BNTrainingUpdateGrad,
// BN3DTrainingUpdateGrad and BNTrainingReduceGrad. The first two inputs are an incoming gradient
// and x, the others have an entry for each channel.
#include "graph/ops/batch_norm.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

Result<ChannelPlan> PlanBatchNormGrad(const OpContext& op) {
  Check check(op);
  ChannelPlan plan;
  plan.view = ViewByChannel(op, 1, "NCHW", check);
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.training = op.attr_bool("is_training");
  const TensorType of_channels = {DataType::kFloat, op.in("weight").shape};
  plan.outputs = {op.in("dy"), of_channels, of_channels};
  return check.Done(std::move(plan));
}

// Inputs dy, x, weight, running mean and variance, saved mean and rstd. In inference the statistics
// are constants, and dx lacks the terms that come through them.
Status RunBatchNormGrad(const ChannelPlan& plan, RealTensors& t) {
  Reals &rstd = t.room[0], &room = t.room[1];
  if (plan.training) {
    NormGradient(plan.view, {t.in[0], t.in[1], t.in[5], t.in[6], t.in[2]}, &t.out[0], &t.out[1],
                 &t.out[2], &room);
    return Status();
  }
  FindRstd(t.in[4], plan.epsilon, &rstd);
  NormGradient(plan.view, {t.in[0], t.in[1], t.in[3], rstd, t.in[2]}, nullptr, &t.out[1], &t.out[2],
               &room);
  plan.view.ForEach(
      [&](size_t e, size_t, size_t p) { t.out[0][e] = t.in[0][e] * t.in[2][p] * rstd[p]; });
  return Status();
}

// ---- the same in two steps ----

Result<NormPlan> PlanUpdateGrad(const OpContext& op) {
  Check check(op);
  NormPlan plan;
  plan.view = ViewByChannel(op, 1, "NCHW", check);
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.outputs.assign(2, {DataType::kFloat, op.in("batch_mean").shape});
  return check.Done(std::move(plan));
}

// Inputs grads, x, batch mean and variance.
Status RunUpdateGrad(const NormPlan& plan, RealTensors& t) {
  const Reals none;
  Reals &rstd = t.room[0], &room = t.room[1];
  FindRstd(t.in[3], plan.epsilon, &rstd);
  NormGradient(plan.view, {t.in[0], t.in[1], t.in[2], rstd, none}, nullptr, &t.out[0], &t.out[1],
               &room);
  return Status();
}

Result<NormPlan> PlanReduceGrad(const OpContext& op) {
  Check check(op);
  NormPlan plan;
  plan.view = ViewByChannel(op, 1, "NCHW", check);
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.outputs = {op.in("grads")};
  return check.Done(std::move(plan));
}

// Inputs grads, x, diff_scale, diff_offset, scale, batch mean and variance.
Status RunReduceGrad(const NormPlan& plan, RealTensors& t) {
  Reals& rstd = t.room[0];
  FindRstd(t.in[6], plan.epsilon, &rstd);
  const double count = plan.view.count();
  plan.view.ForEach([&](size_t e, size_t, size_t p) {
    const double normalised = (t.in[1][e] - t.in[5][p]) * rstd[p];
    const double through = (t.in[3][p] + normalised * t.in[2][p]) / count;
    t.out[0][e] = t.in[4][p] * rstd[p] * (t.in[0][e] - through);
  });
  return Status();
}

}  // namespace

void RegisterBatchNormGradients(OpRegistry& registry) {
  registry.Add(DefineReal<PlanBatchNormGrad, RunBatchNormGrad>(
      "BatchNormGradV3(dy, x, weight, running_mean, running_var, save_mean, save_rstd; "
      "is_training=true, epsilon=1e-05) -> dx, dweight, dbias"));
  registry.Add(DefineReal<PlanUpdateGrad, RunUpdateGrad>(
      "BNTrainingUpdateGrad(grads, x, batch_mean, batch_variance; epsilon=0.0001) -> diff_scale, "
      "diff_offset"));
  registry.Add(DefineReal<PlanUpdateGrad, RunUpdateGrad>(
      "BN3DTrainingUpdateGrad(grads, x, batch_mean, batch_variance; epsilon=0.0001) -> diff_scale, "
      "diff_offset"));
  registry.Add(DefineReal<PlanReduceGrad, RunReduceGrad>(
      "BNTrainingReduceGrad(grads, x, diff_scale, diff_offset, scale, batch_mean, batch_variance; "
      "epsilon=0.0001) -> y"));
}

}  // namespace npumesh
