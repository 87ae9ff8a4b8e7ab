// The gated activation of feed-forward layers with the options of DequantSwigluQuant.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_GATED_UNIT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_GATED_UNIT_H_

#include "graph/ops/core/operator.h"

namespace npumesh {

struct GatedUnit {
  int64_t mode = 0;  // swiglu_mode, 0 to 2
  bool left_is_gate = false;
  float limit = 0, alpha = 0, bias = 0;

  // Reads swiglu_mode, which is not checked, activate_left, clamp_limit, glu_alpha and glu_bias.
  static GatedUnit Of(const OpContext& op);

  // z = silu(gate) * other of `first` and `second`, or the clipped form: of even and odd elements
  // of `first` in mode 1, of the two in mode 2.
  void Apply(const float* first, const float* second, int64_t count, float* z) const;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_GATED_UNIT_H_
