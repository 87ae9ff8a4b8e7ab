// Reductions that need whole rows at once: deviations, norms, logarithms of sums.
//
// Statistics are computed in two passes in double and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"

namespace npumesh {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Rows = std::vector<LoopNumber>;
using Inputs = std::span<const LoopNumber>;

// The variance about `mean` of n elements of which `correction` are not independent. Too few of
// them give what 0 in the denominator gives.
LoopNumber Variance(const LoopNumber& x, const LoopNumber& mean, double n, int64_t correction) {
  const LoopNumber distance = x - mean;
  return RowTotal(distance * distance) / std::max(n - static_cast<double>(correction), 0.0);
}

Rows Deviation(const LoopNumber& x, double n, int64_t correction) {
  const LoopNumber mean = RowTotal(x) / n;
  return {RootOf(Variance(x, mean, n, correction)), mean};
}

Rows StdV2(const OpContext& op, Inputs x, double n) {
  return Deviation(x[0], n, op.attr_int("correction"));
}

Rows Std(const OpContext& op, Inputs x, double n) {
  return Deviation(x[0], n, op.attr_bool("unbiased") ? 1 : 0);
}

Rows StdWithMean(const OpContext& op, Inputs x, double n) {
  const int64_t correction = op.attr_bool("unbiased") ? op.attr_int("correction") : 0;
  const LoopNumber variance = Variance(x[0], x[1], n, correction);
  if (!op.attr_bool("invert")) return {RootOf(variance)};
  return {1 / RootOf(variance + static_cast<double>(op.attr_float("epsilon")))};
}

Rows LogSumExp(const OpContext&, Inputs x, double) {
  const LoopNumber most = RowLargest(x[0]);
  const LoopNumber sum = RowTotal(ExpOf(x[0] - most));
  return {Where(Magnitude(most) == kInfinity, most, most + LogOf(sum))};
}

Rows LogSum(const OpContext&, Inputs x, double) {
  return {LogOf(RowTotal(x[0]))};
}

LoopNumber PNorm(const LoopNumber& x, double p) {
  if (p == 0) return RowTotal(Where(x != 0, 1, 0));
  return PowOf(RowTotal(PowOf(Magnitude(x), p)), 1 / p);
}

// The largest or smallest magnitude; NaN wins. Of no elements the largest is 0.
LoopNumber InfiniteNorm(const LoopNumber& x, bool largest) {
  if (!largest) return RowLeast(Magnitude(x));
  const LoopNumber most = RowLargest(Magnitude(x));
  return Where(most < 0, 0, most);
}

// TorchAir writes the infinite orders as the limits of int32.
Rows LpNorm(const OpContext& op, Inputs x, double) {
  const auto p = static_cast<double>(op.attr_float("p"));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  const LoopNumber norm = std::fabs(p) >= 2147483647.0 ? InfiniteNorm(x[0], p > 0) : PNorm(x[0], p);
  return {Where(norm < epsilon, epsilon, norm)};
}

}  // namespace

void RegisterStatisticOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
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
