#include "graph/ops/toolbox/rows/norm_view.h"

#include <algorithm>
#include <cmath>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {

NormView LayerView(const Shape& x, int axis, int64_t params) {
  return {.elements = x.elements(),
          .params = params,
          .outer_step = ElementsBetween(x, axis, x.rank()),
          .share = params,
          .statistics = ElementsBetween(x, 0, axis)};
}

Result<NormView> GroupView(const OpContext& op, const Shape& x, bool channels_last,
                           int64_t groups) {
  const int channel = channels_last ? x.rank() - 1 : 1;
  if (x.rank() < 2 || groups < 1 || x[channel] % groups != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: x {} has channels in dimension {}, which do not divide into {} groups",
                 op.Who(), x.ToString(), channel, groups);
  }
  return NormView{.elements = x.elements(),
                  .param_step = ElementsBetween(x, channel + 1, x.rank()),
                  .params = x[channel],
                  .outer_step = ElementsBetween(x, 1, x.rank()),
                  .groups = groups,
                  .share = x[channel] / groups,
                  .statistics = x[0] * groups};
}

NormView ChannelView(const Shape& x, bool channels_last) {
  const int channel = channels_last ? x.rank() - 1 : 1;
  return {.elements = x.elements(),
          .param_step = ElementsBetween(x, channel + 1, x.rank()),
          .params = x[channel],
          .outer_step = x.elements(),
          .groups = x[channel],
          .statistics = x[channel]};
}

Shape StatisticsShape(const Shape& x, int axis) {
  Shape shape = x;
  for (int i = axis; i < x.rank(); ++i) shape[i] = 1;
  return shape;
}

bool EndsWith(const Shape& x, const Shape& tail) {
  if (tail.rank() > x.rank()) return false;
  return std::equal(tail.dims().begin(), tail.dims().end(), x.dims().end() - tail.rank());
}

void FindMoments(const NormView& view, const Reals& x, Reals* mean, Reals* variance) {
  mean->assign(static_cast<size_t>(view.statistics), 0.0);
  variance->assign(static_cast<size_t>(view.statistics), 0.0);
  view.ForEachRun([&](size_t begin, size_t end, size_t s, size_t) {
    double sum = (*mean)[s];
    for (size_t e = begin; e < end; ++e) sum += x[e];
    (*mean)[s] = sum;
  });
  for (double& value : *mean) value /= view.count();
  view.ForEachRun([&](size_t begin, size_t end, size_t s, size_t) {
    const double middle = (*mean)[s];
    double sum = (*variance)[s];
    for (size_t e = begin; e < end; ++e) sum += (x[e] - middle) * (x[e] - middle);
    (*variance)[s] = sum;
  });
  for (double& value : *variance) value /= view.count();
}

void FindRstd(const Reals& variance, double epsilon, Reals* rstd) {
  rstd->resize(variance.size());
  for (size_t i = 0; i < variance.size(); ++i) (*rstd)[i] = 1 / std::sqrt(variance[i] + epsilon);
}

void Normalise(const NormView& view, const Reals& x, const Reals& mean, const Reals& rstd,
               const Reals& gamma, const Reals& beta, Reals* y) {
  double* const to = y->data();
  view.ForEachRun([&](size_t begin, size_t end, size_t s, size_t p) {
    const double middle = mean.empty() ? 0.0 : mean[s], factor = rstd[s];
    const double slope = gamma.empty() ? 1.0 : gamma[p];
    // -0 changes nothing; 0 would change -0.
    const double shift = beta.empty() ? -0.0 : beta[p];
    for (size_t e = begin; e < end; ++e) to[e] = (x[e] - middle) * factor * slope + shift;
  });
}

void NormGradient(const NormView& view, const NormGradientInputs& in, Reals* dx, Reals* dgamma,
                  Reals* dbeta, Reals* room) {
  const auto statistics = static_cast<size_t>(view.statistics);
  room->assign(2 * statistics, 0.0);
  const auto wanted = [](const Reals* reals) { return reals != nullptr && !reals->empty(); };
  const auto normalised = [&](size_t e, size_t s) {
    return (in.x[e] - (in.mean.empty() ? 0.0 : in.mean[s])) * in.rstd[s];
  };
  view.ForEach([&](size_t e, size_t s, size_t p) {
    const double n = normalised(e, s);
    const double g = in.dy[e] * (in.gamma.empty() ? 1.0 : in.gamma[p]);
    (*room)[s] += g;
    (*room)[statistics + s] += g * n;
    if (wanted(dgamma)) (*dgamma)[p] += in.dy[e] * n;
    if (wanted(dbeta)) (*dbeta)[p] += in.dy[e];
  });
  if (!wanted(dx)) return;
  view.ForEach([&](size_t e, size_t s, size_t p) {
    const double g = in.dy[e] * (in.gamma.empty() ? 1.0 : in.gamma[p]);
    const double mean = in.mean.empty() ? 0.0 : (*room)[s] / view.count();
    const double slope = (*room)[statistics + s] / view.count();
    (*dx)[e] = in.rstd[s] * (g - mean - normalised(e, s) * slope);
  });
}

Status RunNorm(const NormPlan& plan, RealTensors& t) {
  Reals &y = t.out[0], &mean = t.out[1], &third = t.out[2], &rstd = t.room[0];
  FindMoments(plan.view, t.in[0], &mean, &third);
  FindRstd(third, plan.epsilon, &rstd);
  Normalise(plan.view, t.in[0], mean, rstd, t.in[1], t.in[2], &y);
  for (size_t i = 0; plan.swish && i < y.size(); ++i) y[i] *= Sigmoid(*plan.swish * y[i]);
  if (plan.gives_rstd) third = rstd;
  return Status();
}

}  // namespace npumesh
