// The activations between and after the products of experts.
#ifndef NPUMESH_GRAPH_OPS_QUANT_EXPERT_ACTIVATION_H_
#define NPUMESH_GRAPH_OPS_QUANT_EXPERT_ACTIVATION_H_

#include <cmath>
#include <cstdint>

namespace npumesh {

enum class ExpertActivation : uint8_t { kNone, kRelu, kGelu, kFastGelu, kSilu };

// gelu is the form with tanh.
inline double Activated(ExpertActivation activation, double v) {
  constexpr double kTwoRootTwoOverPi = 2 * 0.7978845608028654;
  switch (activation) {
    case ExpertActivation::kNone:
      return v;
    case ExpertActivation::kRelu:
      return v < 0 ? 0 : v;
    case ExpertActivation::kGelu:
      return v / (1 + std::exp(-kTwoRootTwoOverPi * (v + 0.044715 * v * v * v)));
    case ExpertActivation::kFastGelu:
      return v * std::exp(0.851 * (v - std::fabs(v))) / (1 + std::exp(-1.702 * std::fabs(v)));
    case ExpertActivation::kSilu:
      break;
  }
  return v / (1 + std::exp(-v));
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_QUANT_EXPERT_ACTIVATION_H_
