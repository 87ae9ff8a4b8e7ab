// A mixture of experts, expert parallel: rank r owns experts [r * E / ranks, (r + 1) * E / ranks),
// and every rank has other tokens.
//
//   weights, ids = top 2 of softmax(x wgT + bias)          in float32
//   y = x + sum over the choices of weight * expert(x),  expert(x) = swiglu(x w1) w2
//
// The bias decides loads: it can starve an expert, or all experts of a rank.
#ifndef NPUMESH_TESTS_MODELS_MOE_LAYER_H_
#define NPUMESH_TESTS_MODELS_MOE_LAYER_H_

#include <vector>

#include "graph/ir/graph.h"
#include "tests/models/parameters.h"

namespace npumesh::models {

inline constexpr int64_t kExperts = 8;
inline constexpr int64_t kChoices = 2;
inline constexpr int64_t kMoeWidth = 8;
inline constexpr int64_t kMoeInner = 6;

enum class MoeForm {
  // npu_moe_distribute_dispatch_v2 and _combine_v2 around grouped products.
  kDispatch,
  // npu_moe_init_routing_v2, two all_to_all_single with computed counts, npu_moe_re_routing,
  // npu_moe_finalize_routing. How many tokens come is known only when the counts have arrived.
  kAllToAll,
};

// "gate.w", "gate.bias" and, for all experts, "w1" [E, H, 2 F] and "w2" [E, F, H]. Rounded to
// `dtype` but for the gate.
Parameters MoeWeights(DataType dtype, const std::vector<int64_t>& starved, uint64_t seed);
std::vector<double> MoeTokens(DataType dtype, int64_t tokens, uint64_t seed);

// Input "x" [-1, H] (kDispatch: [tokens, H]) of `dtype`, float16 or bfloat16. Outputs: y, and the
// tokens of each expert of this rank, int64.
Result<Model> BuildMoeLayer(MoeForm form, DataType dtype, const Parameters& weights, int64_t tokens,
                            int rank, int ranks);

struct MoeResult {
  std::vector<double> y;
  std::vector<int64_t> loads;  // by expert, of these tokens
  double narrowest = 1;        // between a chosen and the next probability
};
MoeResult MoeReference(const Parameters& weights, const std::vector<double>& tokens);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_MOE_LAYER_H_
