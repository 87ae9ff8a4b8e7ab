// What layer, group and batch normalisation have in common.
//
// Every element of x belongs to one statistic (a mean and a variance) and to one parameter (an
// entry of gamma and beta); the norms differ in nothing but which. All in double.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_NORM_VIEW_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_NORM_VIEW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/ops/core/define.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {

// Element e, counted in C order, has parameter p = (e / param_step) % params and statistic
// (e / outer_step) * groups + p / share.
struct NormView {
  int64_t elements = 0;
  int64_t param_step = 1;  // divides outer_step
  int64_t params = 1, outer_step = 1, groups = 1;
  int64_t share = 1;  // parameters of a group
  int64_t statistics = 0;

  // Elements of each statistic.
  double count() const { return statistics > 0 ? static_cast<double>(elements / statistics) : 0.0; }

  // Calls visit(element, statistic, parameter) in C order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    ForEachRun([&](size_t begin, size_t end, size_t statistic, size_t param) {
      for (size_t e = begin; e < end; ++e) visit(e, statistic, param);
    });
  }
  // The same for runs of param_step elements: visit(begin, end, statistic, parameter).
  template <typename Visit>
  void ForEachRun(Visit visit) const {
    int64_t param = 0, shared = 0, group = 0, left = outer_step, base = 0;
    for (int64_t run = 0; run < elements; run += param_step) {
      visit(static_cast<size_t>(run), static_cast<size_t>(run + param_step),
            static_cast<size_t>(base + group), static_cast<size_t>(param));
      if (++shared == share) {
        shared = 0;
        ++group;
      }
      if (++param == params) param = shared = group = 0;
      if ((left -= param_step) == 0) {
        left = outer_step;
        base += groups;
      }
    }
  }
};

// One statistic for what dimensions [axis, rank) span, `params` parameters that span the last of
// them. REQUIRES: params are the product of the last dimensions.
NormView LayerView(const Shape& x, int axis, int64_t params);

// One parameter for each channel; of each image, a statistic for each group of channels. Error
// (kInvalidArgument) unless the channels divide into groups.
Result<NormView> GroupView(const OpContext& op, const Shape& x, bool channels_last, int64_t groups);

// One parameter and one statistic for each channel: dimension 1, or the last one. REQUIRES: rank
// at least 2.
NormView ChannelView(const Shape& x, bool channels_last);

// x with dimensions [axis, rank) 1: the shape of means and the like.
Shape StatisticsShape(const Shape& x, int axis);

// True when `tail` are the last dimensions of x.
bool EndsWith(const Shape& x, const Shape& tail);

using Reals = std::vector<double>;

// Functions give their results the size they need.

// Mean and biased variance, in two passes.
void FindMoments(const NormView& view, const Reals& x, Reals* mean, Reals* variance);

// 1 / sqrt(variance + epsilon) for each.
void FindRstd(const Reals& variance, double epsilon, Reals* rstd);

// y = (x - mean) * rstd * gamma + beta. Empty: no mean to subtract, gamma 1, beta 0.
void Normalise(const NormView& view, const Reals& x, const Reals& mean, const Reals& rstd,
               const Reals& gamma, const Reals& beta, Reals* y);

struct NormGradientInputs {
  const Reals& dy;
  const Reals& x;
  const Reals& mean;  // empty: not centred, as RmsNorm
  const Reals& rstd;
  const Reals& gamma;  // empty: 1
};

// With n = x_hat = (x - mean) * rstd and means over what shares a statistic:
//   dx = rstd * (dy gamma - mean(dy gamma) - n mean(dy gamma n)),
//   dgamma = sum(dy n), dbeta = sum(dy). Results that are null or empty are not wanted.
// `room` is working memory; it keeps its size from call to call.
void NormGradient(const NormView& view, const NormGradientInputs& in, Reals* dx, Reals* dgamma,
                  Reals* dbeta, Reals* room);

// A planned normalisation (double_kernel.h).
struct NormPlan : Planned {
  NormView view;
  double epsilon = 0;
  bool gives_rstd = false;      // output 2 is rstd, not the variance
  std::optional<double> swish;  // y becomes y * sigmoid(swish * y)
};

// Inputs x, gamma and beta; outputs y, mean, and variance or rstd.
Status RunNorm(const NormPlan& plan, RealTensors& t);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_NORM_VIEW_H_
