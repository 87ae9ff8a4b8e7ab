#include "graph/ops/toolbox/values/gated_unit.h"

#include <algorithm>

#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {
namespace {

float SigmoidOf(float x) {
  return static_cast<float>(Sigmoid(static_cast<double>(x)));
}

}  // namespace

GatedUnit GatedUnit::Of(const OpContext& op) {
  return {op.attr_int("swiglu_mode"), op.attr_bool("activate_left"), op.attr_float("clamp_limit"),
          op.attr_float("glu_alpha"), op.attr_float("glu_bias")};
}

void GatedUnit::Apply(const float* first, const float* second, int64_t count, float* z) const {
  const bool pairs = mode == 1;
  const bool left = left_is_gate || pairs;
  for (int64_t i = 0; i < count; ++i) {
    const float a = pairs ? first[2 * i] : first[i];
    const float b = pairs ? first[2 * i + 1] : second[i];
    float gate = left ? a : b;
    float other = left ? b : a;
    if (mode == 0) {
      z[i] = gate * SigmoidOf(gate) * other;
      continue;
    }
    gate = std::min(gate, limit);
    other = std::clamp(other, -limit, limit);
    z[i] = gate * SigmoidOf(alpha * gate) * (other + bias);
  }
}

}  // namespace npumesh
