#include <cmath>
#include <limits>

#include "graph/ops/core/check.h"
#include "graph/ops/elementwise/foreach.h"
#include "graph/ops/elementwise/pointwise.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {
namespace {

// The nearest odd number of two neighbours; whole numbers stay.
double NearestOdd(double x) {
  const double low = std::floor(x);
  if (low == x || !std::isfinite(x)) return x;
  return std::fmod(low, 2.0) != 0 ? low : low + 1;
}

double RoundOff(double x, double mode) {
  switch (static_cast<int>(mode)) {
    case 1:
      return std::nearbyint(x);
    case 2:
      return std::floor(x);
    case 3:
      return std::ceil(x);
    case 4:
      return std::round(x);
    case 5:
      return std::trunc(x);
    case 6:
      return NearestOdd(x);
    case 7:
      return x - std::trunc(x);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

// The norm that `p` names: the number of elements that are not zero, the sum of magnitudes, ...,
// the largest or the least magnitude for plus and minus infinity.
double NormOf(const std::vector<double>& x, double p) {
  double result = p == -INFINITY ? INFINITY : 0;
  for (const double value : x) {
    const double magnitude = std::abs(value);
    if (std::isnan(magnitude)) return magnitude;
    if (p == INFINITY) {
      result = std::max(result, magnitude);
    } else if (p == -INFINITY) {
      result = std::min(result, magnitude);
    } else if (p == 0) {
      result += magnitude != 0 ? 1 : 0;
    } else {
      result += p == 2 ? magnitude * magnitude : std::pow(magnitude, p);
    }
  }
  if (p == 0 || std::isinf(p)) return result;
  return p == 2 ? std::sqrt(result) : std::pow(result, 1 / p);
}

Planned PlanNorm(const OpContext& op, Check& check) {
  check.Keep(ExpectReal(op, "x"));
  Planned plan;
  plan.outputs = {{op.in("x").dtype, Shape()}};
  return plan;
}

Status Norm(const Planned&, RealTensors& t) {
  t.out[0][0] = NormOf(t.in[0], t.in[1][0]);
  return Status();
}

}  // namespace

void RegisterForeachElements(OpRegistry& registry) {
  const PointwiseSpec rows[] = {
      {"Log2(x) -> y",
       [](Real auto x) { return Log2Of(x); },
       {.precision = PrecisionClass::kBlack}},
      {"Log10(x) -> y",
       [](Real auto x) { return Log10Of(x); },
       {.precision = PrecisionClass::kBlack}},
      {"RoundOff(x, mode) -> y",
       [](double x, double mode) { return RoundOff(x, mode); },
       {.data = 1}},
      {"Quotient(x1, x2) -> y",
       [](Real auto a, Real auto b) { return a / b; },
       {.integer = [](WideInt a, WideInt b) { return b == 0 ? 0 : a / b; }}},
  };
  RegisterPointwise(registry, rows);
  registry.Add(
      DefineReal<PlanNorm, Norm>("Norm(x, p) -> y", {.precision = PrecisionClass::kBlack}));
}

}  // namespace npumesh
