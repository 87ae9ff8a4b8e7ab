// The operators that bring the results of experts back to their tokens, as they are read from a
// node: MoeDistributeCombine, MoeDistributeCombineV2 and MoeDistributeCombineAddRmsNorm. Ops
// reference 5.12 and 5.19.
#ifndef NPUMESH_GRAPH_OPS_MOE_COMBINE_H_
#define NPUMESH_GRAPH_OPS_MOE_COMBINE_H_

#include "graph/ops/moe_exchange.h"
#include "graph/ops/numbers.h"

namespace npumesh::moe {

inline constexpr int64_t kAssist = 128;  // int32 of hand-over data for each row of the V2 operators

struct Combine {
  Placement placement;
  int64_t tokens = 0;
  int64_t group_tokens = 0;  // of all ranks together, at most
  int64_t k = 0;
  int64_t width = 0;
  int64_t rows = 0;       // of expand_x
  int64_t zeros = 0;      // experts behind the last one: that give nothing,
  int64_t copies = 0;     // give the token back,
  int64_t constants = 0;  // or alpha1 * token + alpha2 * v
  DataType dtype = DataType::kUndefined;
  int assist = -1;  // slot of assist_info_for_combine; -1: the operator has none
  int active = -1;
  int shared_x = -1;
  int original = -1;
  int residual = -1;  // added before the sum is normalised; -1: it is not
  int gamma = -1;
  double epsilon = 0;
  Factors weights;
  Factors alpha1;
  Factors alpha2;
  Factors constant;

  int64_t row_bytes() const { return width * BitsOf(dtype) / 8; }
  Chunks chunks() const {
    return Chunks::Of(placement, group_tokens, k + placement.shared_experts, row_bytes());
  }
};

// Reads and checks everything but values. Not collective.
Result<Combine> PlanCombine(const OpContext& op);

// The three schemas.
std::vector<OpSchema> CombineSchemas();

}  // namespace npumesh::moe

#endif  // NPUMESH_GRAPH_OPS_MOE_COMBINE_H_
