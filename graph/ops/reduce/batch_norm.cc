// Normalisation by channel over a batch, in training: BatchNormV3 and BatchNorm, the pieces
// BNTrainingReduce and BNTrainingUpdate that do the same in two steps, SyncBatchNormGatherStats,
// and the gradients BatchNormGradV3, BNTrainingUpdateGrad, BN3DTrainingUpdateGrad and
// BNTrainingReduceGrad.
//
// Running variances take in the unbiased variance of the batch (n / (n - 1); a batch of one element
// has none and counts as 0).
#include <algorithm>
#include <numeric>

#include "graph/ops/core/check.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/image_layout.h"
#include "graph/ops/toolbox/rows/norm_view.h"

namespace npumesh {
namespace {

struct ChannelPlan : NormPlan {
  double momentum = 0;
  bool training = true;  // statistics are those of the batch
};

// The input in slot `x_slot` by channels. Inputs before it have its shape, those after it an entry
// for each channel. Matrices have channels last, other tensors where layout or `fallback` says.
NormView ViewByChannel(const OpContext& op, int x_slot, std::string_view fallback, Check& check) {
  const std::vector<PortSpec>& ports = op.schema().inputs;
  const auto x_port = static_cast<size_t>(x_slot);
  const TensorType& x = op.in(x_slot);
  check.That(x.shape.rank() >= 2, "\"{}\" is {}, expected two dimensions or more",
             ports[x_port].name, x);
  if (!check.ok()) return NormView();
  const bool last = x.shape.rank() == 2 || check.Take(ChannelsLast(op, x_slot, fallback));
  const NormView view = ChannelView(x.shape, last);
  check.Keep(ExpectAllReal(op));
  for (size_t i = 0; i < x_port; ++i) {
    check.Keep(ExpectSameShape(op, ports[i].name, ports[x_port].name));
  }
  for (size_t i = x_port + 1; i < ports.size(); ++i) {
    check.Keep(ExpectCount(op, ports[i].name, view.params, "channel"));
  }
  return view;
}

// A plan of ViewByChannel, with the attribute "epsilon".
ChannelPlan PlanByChannel(const OpContext& op, int x_slot, std::string_view fallback,
                          Check& check) {
  ChannelPlan plan;
  plan.view = ViewByChannel(op, x_slot, fallback, check);
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  return plan;
}

double UnbiasedFactor(double count) {
  return count > 1 ? count / (count - 1) : 0.0;
}

// old * (1 - momentum) + fresh * factor * momentum, by entry.
void Advance(const Reals& old, const Reals& fresh, double factor, double momentum, Reals* to) {
  for (size_t i = 0; i < to->size(); ++i) {
    (*to)[i] = (1 - momentum) * old[i] + momentum * factor * fresh[i];
  }
}

// ---- BatchNormV3 ----

ChannelPlan PlanBatchNormV3(const OpContext& op, Check& check) {
  ChannelPlan plan = PlanByChannel(op, 0, "NCHW", check);
  plan.momentum = static_cast<double>(op.attr_float("momentum"));
  plan.training = op.attr_bool("is_training");
  const TensorType saved = {DataType::kFloat, {plan.view.params}};
  plan.outputs = {op.in("x"), op.in("running_mean"), op.in("running_var"), saved, saved};
  return plan;
}

// Inputs x, weight, bias, running mean and variance. In inference the saved statistics are those
// that were used.
Status RunBatchNormV3(const ChannelPlan& plan, RealTensors& t) {
  Reals &mean = t.out[3], &rstd = t.out[4];
  t.out[1] = mean = t.in[3];
  t.out[2] = rstd = t.in[4];
  if (plan.training) {
    FindMoments(plan.view, t.in[0], &mean, &rstd);
    Advance(t.in[3], mean, 1, plan.momentum, &t.out[1]);
    Advance(t.in[4], rstd, UnbiasedFactor(plan.view.count()), plan.momentum, &t.out[2]);
  }
  FindRstd(rstd, plan.epsilon, &rstd);
  Normalise(plan.view, t.in[0], mean, rstd, t.in[1], t.in[2], &t.out[0]);
  return Status();
}

// ---- BatchNorm ----

// y, batch_mean, batch_variance, reserve_space_1 (mean), reserve_space_2 (biased variance), and
// where the node has it reserve_space_3, which is one zero.
ChannelPlan PlanBatchNorm(const OpContext& op, Check& check) {
  const bool training = op.attr_bool("is_training");
  check.That(training || (op.has("mean") && op.has("variance")),
             "is_training is false, which needs \"mean\" and \"variance\"");
  ChannelPlan plan = PlanByChannel(op, 0, op.attr_string("data_format"), check);
  plan.training = training;
  plan.outputs.assign(5, {DataType::kFloat, {plan.view.params}});
  plan.outputs[0] = op.in("x");
  if (op.outputs() > 5) plan.outputs.push_back({DataType::kFloat, {1}});
  return plan;
}

Status RunBatchNorm(const ChannelPlan& plan, RealTensors& t) {
  Reals &mean = t.out[3], &variance = t.out[4], &rstd = t.room[0];
  if (plan.training) {
    FindMoments(plan.view, t.in[0], &mean, &variance);
  } else {
    mean = t.in[3];
    variance = t.in[4];
  }
  FindRstd(variance, plan.epsilon, &rstd);
  Normalise(plan.view, t.in[0], mean, rstd, t.in[1], t.in[2], &t.out[0]);
  const double factor = plan.training ? UnbiasedFactor(plan.view.count()) : 1.0;
  t.out[1] = mean;
  for (size_t i = 0; i < variance.size(); ++i) t.out[2][i] = factor * variance[i];
  return Status();
}

// ---- BNTrainingReduce, BNTrainingUpdate ----

NormPlan PlanBatchSums(const OpContext& op, Check& check) {
  NormPlan plan;
  plan.view = ViewByChannel(op, 0, "NCHW", check);
  plan.outputs.assign(2, {DataType::kFloat, {plan.view.params}});
  return plan;
}

Status RunBatchSums(const NormPlan& plan, RealTensors& t) {
  plan.view.ForEach([&](size_t e, size_t, size_t p) {
    t.out[0][p] += t.in[0][e];
    t.out[1][p] += t.in[0][e] * t.in[0][e];
  });
  return Status();
}

ChannelPlan PlanUpdate(const OpContext& op, Check& check) {
  ChannelPlan plan = PlanByChannel(op, 0, "NCHW", check);
  plan.momentum = static_cast<double>(op.attr_float("factor"));
  const TensorType &mean = op.in("mean"), &variance = op.in("variance");
  plan.outputs = {op.in("x"), mean, variance, mean, variance};
  return plan;
}

// Inputs x, sum, square_sum, scale, offset, mean, variance.
Status RunUpdate(const ChannelPlan& plan, RealTensors& t) {
  Reals &mean = t.out[3], &variance = t.out[4], &rstd = t.room[0];
  const double count = plan.view.count();
  for (size_t i = 0; i < mean.size(); ++i) {
    mean[i] = t.in[1][i] / count;
    variance[i] = std::max(t.in[2][i] / count - mean[i] * mean[i], 0.0);
  }
  FindRstd(variance, plan.epsilon, &rstd);
  Normalise(plan.view, t.in[0], mean, rstd, t.in[3], t.in[4], &t.out[0]);
  Advance(t.in[5], mean, 1, plan.momentum, &t.out[1]);
  Advance(t.in[6], variance, UnbiasedFactor(count), plan.momentum, &t.out[2]);
  return Status();
}

// ---- SyncBatchNormGatherStats ----

// Sums of one rank or of several, one after the other.
ChannelPlan PlanGatherStats(const OpContext& op, Check& check) {
  const TensorType &mean = op.in("mean"), &sums = op.in("total_sum");
  const int64_t channels = mean.shape.elements();
  for (const std::string_view port : {"total_sum", "total_square_sum", "mean", "variance"}) {
    check.Keep(ExpectReal(op, port));
  }
  check.Keep(ExpectCount(op, "variance", channels, "channel"));
  check.Keep(ExpectSameShape(op, "total_square_sum", "total_sum"));
  check.That(channels > 0 && sums.shape.elements() % channels == 0,
             "total_sum is {}, expected {} sums for each rank", sums, channels);
  ChannelPlan plan;
  plan.epsilon = static_cast<double>(op.attr_float("eps"));
  plan.momentum = static_cast<double>(op.attr_float("momentum"));
  const TensorType of_batch = {sums.dtype, mean.shape};
  plan.outputs = {of_batch, of_batch, mean, op.in("variance")};
  return plan;
}

Status RunGatherStats(const ChannelPlan& plan, RealTensors& t) {
  Reals &mean = t.out[0], &variance = t.room[0];
  const size_t channels = mean.size();
  const double count = std::accumulate(t.in[2].begin(), t.in[2].end(), 0.0);
  variance.assign(channels, 0.0);
  for (size_t i = 0; i < t.in[0].size(); ++i) {
    mean[i % channels] += t.in[0][i] / count;
    variance[i % channels] += t.in[1][i] / count;
  }
  for (size_t i = 0; i < channels; ++i) {
    variance[i] = std::max(variance[i] - mean[i] * mean[i], 0.0);
  }
  FindRstd(variance, plan.epsilon, &t.out[1]);
  Advance(t.in[3], mean, 1, plan.momentum, &t.out[2]);
  Advance(t.in[4], variance, UnbiasedFactor(count), plan.momentum, &t.out[3]);
  return Status();
}

// ---- gradients: inputs are an incoming gradient, x, and vectors of the channels ----

ChannelPlan PlanBatchNormGrad(const OpContext& op, Check& check) {
  ChannelPlan plan = PlanByChannel(op, 1, "NCHW", check);
  plan.training = op.attr_bool("is_training");
  const TensorType of_channels = {DataType::kFloat, op.in("weight").shape};
  plan.outputs = {op.in("dy"), of_channels, of_channels};
  return plan;
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

ChannelPlan PlanUpdateGrad(const OpContext& op, Check& check) {
  ChannelPlan plan = PlanByChannel(op, 1, "NCHW", check);
  plan.outputs.assign(2, {DataType::kFloat, op.in("batch_mean").shape});
  return plan;
}

// Inputs grads, x, batch mean and variance.
Status RunUpdateGrad(const ChannelPlan& plan, RealTensors& t) {
  const Reals none;
  Reals &rstd = t.room[0], &room = t.room[1];
  FindRstd(t.in[3], plan.epsilon, &rstd);
  NormGradient(plan.view, {t.in[0], t.in[1], t.in[2], rstd, none}, nullptr, &t.out[0], &t.out[1],
               &room);
  return Status();
}

ChannelPlan PlanReduceGrad(const OpContext& op, Check& check) {
  ChannelPlan plan = PlanByChannel(op, 1, "NCHW", check);
  plan.outputs = {op.in("grads")};
  return plan;
}

// Inputs grads, x, diff_scale, diff_offset, scale, batch mean and variance.
Status RunReduceGrad(const ChannelPlan& plan, RealTensors& t) {
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

void RegisterBatchNormOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  registry.Add(DefineReal<PlanBatchNormV3, RunBatchNormV3>(
      "BatchNormV3(x, weight, bias, running_mean, running_var; epsilon=1e-05, momentum=0.1, "
      "is_training=true) -> y, running_mean, running_var, save_mean, save_rstd",
      {.in_place = {{1, 3}, {2, 4}}}));
  registry.Add(DefineReal<PlanBatchNorm, RunBatchNorm>(
      "BatchNorm(x, scale, offset, mean?, variance?; epsilon=0.0001, data_format=\"NHWC\", "
      "is_training=true, exponential_avg_factor==1.0) -> y, batch_mean, batch_variance, "
      "reserve_space_1, reserve_space_2, reserve_space_3"));
  registry.Add(DefineReal<PlanBatchSums, RunBatchSums>("BNTrainingReduce(x) -> sum, square_sum"));
  registry.Add(DefineReal<PlanUpdate, RunUpdate>(
      "BNTrainingUpdate(x, sum, square_sum, scale, offset, mean, variance; factor:float, "
      "epsilon:float) -> y, mean, variance, batch_mean, batch_variance",
      {.in_place = {{1, 5}, {2, 6}}}));
  registry.Add(DefineReal<PlanGatherStats, RunGatherStats>(
      "SyncBatchNormGatherStats(total_sum, total_square_sum, sample_count, mean, variance; "
      "momentum=0.1, eps=1e-05) -> batch_mean, batch_invstd, mean, variance",
      {.in_place = {{2, 3}, {3, 4}}}));

  // ---- gradients ----
  registry.Add(DefineReal<PlanBatchNormGrad, RunBatchNormGrad>(
      "BatchNormGradV3(dy, x, weight, running_mean, running_var, save_mean, save_rstd; "
      "is_training=true, epsilon=1e-05) -> dx, dweight, dbias"));
  registry.Add(DefineReal<PlanUpdateGrad, RunUpdateGrad>(
      "BNTrainingUpdateGrad(grads, x, batch_mean, batch_variance; epsilon=0.0001) -> diff_scale, "
      "diff_offset"));
  registry.Alias("BN3DTrainingUpdateGrad", "BNTrainingUpdateGrad");
  registry.Add(DefineReal<PlanReduceGrad, RunReduceGrad>(
      "BNTrainingReduceGrad(grads, x, diff_scale, diff_offset, scale, batch_mean, batch_variance; "
      "epsilon=0.0001) -> y"));
}

}  // namespace npumesh
