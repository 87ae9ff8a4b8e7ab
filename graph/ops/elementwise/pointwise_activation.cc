// The rest of the activations, as a table of formulas.
#include <algorithm>
#include <cmath>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/elementwise/pointwise.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

// The polynomial that stands for erf, by the operator's definition; s is the sign of x.
template <Real D>
D FastGeluV2(D x) {
  const D s = Where(x > 0, 1, Where(x < 0, -1, 0));
  const D u = Magnitude(0.7071 * x);
  const D bend = Where(u > 1.769, 1.769, u) - 1.769;
  return x * (s * (-0.1444 * bend * bend + 0.5) + 0.5);
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

template <Real D>
D SoftShrink(D x, double limit) {
  const D rest = Magnitude(x) - limit;
  return Where(rest <= 0, 0, Where(x < 0, -rest, rest));
}

template <Real D>
D SoftplusV2(D x, double beta, double threshold) {
  const D scaled = beta * x;
  return Where(scaled > threshold, x, [&] { return Softplus(scaled) / beta; });
}

// PRelu: one weight for all, or one for each channel (dimension 1).
Result<Shape> PReluShape(const OpContext& op, int slot) {
  const Shape& x = op.in(0).shape;
  const Shape& weight = op.in(slot).shape;
  if (slot == 0 || weight.elements() == 1) return weight;
  if (x.rank() < 2 || weight.elements() != x[1]) {
    return Error(Code::kInvalidArgument,
                 "{}: \"weight\" is {}; expected one element, or one for each channel of x {}",
                 op.Who(), weight.ToString(), x.ToString());
  }
  std::vector<int64_t> dims(static_cast<size_t>(x.rank()) - 1, 1);
  dims[0] = x[1];
  return Shape(std::move(dims));
}

const PointwiseSpec kActivationRows[] = {
    {"Elu(x; alpha=1.0, scale=1.0, input_scale=1.0) -> y",
     [](Real auto x, const C& c) {
       return c[1] * Where(x > 0, x, [&] { return c[0] * Expm1Of(c[2] * x); });
     }},
    {"Selu(x) -> y",
     [](Real auto x) {
       return kSeluScale * Where(x > 0, x, [&] { return kSeluAlpha * Expm1Of(x); });
     }},
    {"Softsign(x) -> y", [](Real auto x) { return x / (1 + Magnitude(x)); }},
    {"FastGeluV2(x) -> y", [](Real auto x) { return FastGeluV2(x); }},
    {"HardShrink(input_x; lambd=0.5) -> output_y",
     [](Real auto x, const C& c) { return Where(Magnitude(x) <= c[0], 0, x); }},
    {"SoftShrink(input_x; lambd=0.5) -> output_y",
     [](Real auto x, const C& c) { return SoftShrink(x, c[0]); }},
    {"Mish(x) -> y", [](Real auto x) { return x * TanhOf(Softplus(x)); }},
    {"LogSigmoid(x) -> y", [](Real auto x) { return -Softplus(-x); }},
    {"Softplus(x) -> y", [](Real auto x) { return Softplus(x); }},
    {"SoftplusV2(x; beta=1.0, threshold=20.0) -> y",
     [](Real auto x, const C& c) { return SoftplusV2(x, c[0], c[1]); }},
    {"ThresholdV2(x, threshold, value?) -> y",
     [](Real auto x, Real auto threshold, Real auto value) {
       return Where(Either(x > threshold, x != x), x, value);
     },
     {.integer = [](WideInt x, WideInt threshold,
                    WideInt value) { return x > threshold ? x : value; },
      .data = 1}},
    {"PRelu(x, weight) -> y",
     [](Real auto x, Real auto weight) { return Where(x > 0, x, weight * x); },
     {.data = 1, .seen_as = PReluShape, .axes = "x[..], weight[?] -> y[..]"}},
};

}  // namespace

void RegisterPointwiseActivationOps(OpRegistry& registry) {
  RegisterPointwise(registry, kActivationRows);
}

}  // namespace npumesh
