// Reductions that need whole rows at once: deviations, norms, logarithms of sums.
//
// Statistics are computed in two passes in double and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/ops/reduce/family.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"

namespace npumesh {
namespace {

using Body = RowBody<double>;

double Mean(const double* x, int64_t n) {
  return std::accumulate(x, x + n, 0.0) / static_cast<double>(n);
}

// Sum of the squared distances from `mean`, which has one element for all or one for each.
double Spread(const double* x, int64_t n, const double* mean, int64_t step) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double distance = x[i] - mean[i * step];
    sum += distance * distance;
  }
  return sum;
}

// Variance of n elements of which `correction` are not independent. Too few of them give what 0 in
// the denominator gives.
double Variance(double spread, int64_t n, int64_t correction) {
  return spread / static_cast<double>(std::max<int64_t>(n - correction, 0));
}

Body DeviationBody(int64_t n, int64_t correction) {
  return [n, correction](const double* x, double* values, int64_t*) {
    const double mean = Mean(x, n);
    values[0] = std::sqrt(Variance(Spread(x, n, &mean, 0), n, correction));
    values[1] = mean;
  };
}

Body StdV2(const OpContext& op, int64_t n) {
  return DeviationBody(n, op.attr_int("correction"));
}

Body Std(const OpContext& op, int64_t n) {
  return DeviationBody(n, op.attr_bool("unbiased") ? 1 : 0);
}

Body StdWithMean(const OpContext& op, int64_t n) {
  const int64_t correction = op.attr_bool("unbiased") ? op.attr_int("correction") : 0;
  const bool invert = op.attr_bool("invert");
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return [=](const double* x, double* values, int64_t*) {
    const double variance = Variance(Spread(x, n, x + n, 1), n, correction);
    values[0] = invert ? 1 / std::sqrt(variance + epsilon) : std::sqrt(variance);
  };
}

Body LogSumExp(const OpContext&, int64_t n) {
  return [n](const double* x, double* values, int64_t*) {
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) most = x[i] > most || std::isnan(x[i]) ? x[i] : most;
    if (std::isinf(most)) {
      values[0] = most;
      return;
    }
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - most);
    values[0] = most + std::log(sum);
  };
}

Body LogSum(const OpContext&, int64_t n) {
  return [n](const double* x, double* values, int64_t*) {
    values[0] = std::log(std::accumulate(x, x + n, 0.0));
  };
}

double PNorm(const double* x, int64_t n, double p) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += p == 0 ? x[i] != 0 : std::pow(std::fabs(x[i]), p);
  return p == 0 ? sum : std::pow(sum, 1 / p);
}

// The largest or smallest magnitude; NaN wins.
double InfiniteNorm(const double* x, int64_t n, bool largest) {
  double best = largest ? 0 : std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    const double magnitude = std::fabs(x[i]);
    const bool better = largest ? magnitude > best : magnitude < best;
    if (better || std::isnan(magnitude)) best = magnitude;
  }
  return best;
}

// TorchAir writes the infinite orders as the limits of int32.
Body LpNorm(const OpContext& op, int64_t n) {
  const auto p = static_cast<double>(op.attr_float("p"));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return [=](const double* x, double* values, int64_t*) {
    const double norm = std::fabs(p) >= 2147483647.0 ? InfiniteNorm(x, n, p > 0) : PNorm(x, n, p);
    values[0] = norm < epsilon ? epsilon : norm;
  };
}

}  // namespace

void RegisterStatisticOps(OpRegistry& registry) {
  constexpr RowOperator kRows[] = {
      {"ReduceStdV2(x; dim=[], correction=1, keepdim=false, is_mean_out=true) -> std, mean", "dim",
       "keepdim", StdV2},
      {"ReduceStd(x; dim=[], unbiased=true, keepdim=false) -> y1, y2", "dim", "keepdim", Std},
      {"ReduceStdWithMean(x, mean; dim=[], unbiased=true, keepdim=false, invert=false, "
       "epsilon=0.001, correction=1) -> y",
       "dim", "keepdim", StdWithMean},
      {"ReduceLogSumExp(x, axes; keep_dims=false, noop_with_empty_axes=false) -> y", "axes",
       "keep_dims", LogSumExp},
      {"ReduceLogSum(x, axes; keep_dims=false) -> y", "axes", "keep_dims", LogSum},
      {"LpNormV2(x; p=2.0, axes=[], keepdim=false, epsilon=1e-12) -> y", "axes", "keepdim", LpNorm},
  };
  for (const RowOperator& row : kRows) AddRowOperator(registry, row);
}

}  // namespace npumesh
