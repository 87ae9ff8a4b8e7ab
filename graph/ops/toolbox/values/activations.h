// Activations of single elements in double, and their constants.
//
// The lanes (toolbox/lanes) have functions of these names, too, in float or rounded from double
// once, but not from the same bits as here. Two ways to compute one function stand side by
// side where operators differ.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ACTIVATIONS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ACTIVATIONS_H_

#include <cmath>
#include <cstdint>
#include <numbers>

#include "graph/ops/core/loop_number.h"

namespace npumesh {

#include "graph/ops/toolbox/lanes/constants.lanes.h"

template <Real D>
D Sigmoid(D x) {
  return 1 / (1 + ExpOf(-x));
}

// x sigmoid(scale x) as one quotient; x * Sigmoid(x) rounds once more.
inline double Swish(double x, double scale) {
  return x / (1 + std::exp(-scale * x));
}
inline double Silu(double x) {
  return x / (1 + std::exp(-x));
}

// ln(1 + e^x) without overflow.
template <Real D>
D Softplus(D x) {
  return Where(x < 0, 0, x) + Log1pOf(ExpOf(-Magnitude(x)));
}

// 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), as written: cancels for negative x.
template <Real D>
D GeluTanh(D x) {
  return 0.5 * x * (1 + TanhOf(kRootTwoOverPi * (x + kGeluCubic * x * x * x)));
}

template <Real D>
D GeluErf(D x) {
  return 0.5 * x * ErfcOf(-x / std::numbers::sqrt2);
}

// What stands between and after products of matrices.
enum class Activation : uint8_t { kNone, kRelu, kGelu, kFastGelu, kSilu };

// Gelu is the form with tanh as x sigmoid(2u), which does not cancel.
inline double Activated(Activation activation, double v) {
  switch (activation) {
    case Activation::kNone:
      return v;
    case Activation::kRelu:
      return v < 0 ? 0 : v;
    case Activation::kGelu:
      return v / (1 + std::exp(-2 * kRootTwoOverPi * (v + kGeluCubic * v * v * v)));
    case Activation::kFastGelu:
      return v * std::exp(kFastGeluScale / 2 * (v - std::fabs(v))) /
             (1 + std::exp(-kFastGeluScale * std::fabs(v)));
    case Activation::kSilu:
      break;
  }
  return Silu(v);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ACTIVATIONS_H_
