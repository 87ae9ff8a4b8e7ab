// The gated activation of feed-forward layers with the options of DequantSwigluQuant.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_GATED_UNIT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_GATED_UNIT_H_

#include <algorithm>

#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {

struct GatedUnit {
  int64_t mode = 0;  // swiglu_mode, 0 to 2
  bool left_is_gate = false;
  float limit = 0, alpha = 0, bias = 0;

  // Reads swiglu_mode, which is not checked, activate_left, clamp_limit, glu_alpha and glu_bias.
  static GatedUnit Of(const OpContext& op) {
    return {op.attr_int("swiglu_mode"), op.attr_bool("activate_left"), op.attr_float("clamp_limit"),
            op.attr_float("glu_alpha"), op.attr_float("glu_bias")};
  }

  // z = silu(gate) * other of `first` and `second`, or the clipped form: of even and odd elements
  // of `first` in mode 1, of the two in mode 2.
  void Apply(const float* first, const float* second, int64_t count, float* z) const {
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

 private:
  static float SigmoidOf(float x) { return static_cast<float>(Sigmoid(static_cast<double>(x))); }
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_GATED_UNIT_H_
