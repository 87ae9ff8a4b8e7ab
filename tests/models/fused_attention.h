// npu_fusion_attention and its gradient, as TorchAir's converters write them for the layout BSH.
#ifndef NPUMESH_TESTS_MODELS_FUSED_ATTENTION_H_
#define NPUMESH_TESTS_MODELS_FUSED_ATTENTION_H_

#include "tests/models/aten_graph.h"

namespace npumesh::models {

struct FusedAttentionInputs {
  Value q, k, v;  // [b, s, heads * width]
  Value mask;     // bool [s, s], true: not seen
  int64_t heads = 1;
  double scale = 1;
};

// Ports: row maxima, row sums, an empty one, attention [b, s, heads * width].
Value FusedAttention(AtenGraph& g, const FusedAttentionInputs& in);
// Ports: dq, dk, dv, dpse. `forward` is what FusedAttention returned.
Value FusedAttentionBackward(AtenGraph& g, Value dy, const FusedAttentionInputs& in, Value forward);
// The mask of causal attention.
Value CausalMask(AtenGraph& g, int64_t sequence);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_FUSED_ATTENTION_H_
