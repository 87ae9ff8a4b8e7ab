// Products at the experts of all ranks, as they are read from a node: AlltoAllvGroupedMatMul,
// GroupedMatMulAlltoAllv, and both with 8-bit operands. Ops reference 5.17 and 5.19.
#ifndef NPUMESH_GRAPH_OPS_FUSED_EXPERTS_H_
#define NPUMESH_GRAPH_OPS_FUSED_EXPERTS_H_

#include <algorithm>
#include <vector>

#include "graph/ops/fused_matmul.h"

namespace npumesh::fused {

// The product of the rows of one expert, or of the shared one.
struct Factor {
  std::string_view x;  // ports
  std::string_view w;
  std::string_view x_scale;  // of 8-bit operands
  std::string_view w_scale;
  int64_t k = 0;
  int64_t n = 0;
  bool transposed = false;
};

struct ExpertsPlan {
  Ring ring;
  bool exchange_first = true;
  bool scaled = false;
  int64_t experts = 0;  // of this rank
  Factor routed = {"gmm_x", "gmm_weight", "gmm_x_scale", "gmm_weight_scale"};
  Factor shared = {"mm_x", "mm_weight", "mm_x_scale", "mm_weight_scale"};
  int64_t shared_rows = -1;  // -1: there is no shared expert
  DataType y_dtype = DataType::kUndefined;
  DataType shared_dtype = DataType::kUndefined;
  std::vector<int64_t> sent;      // by rank and expert
  std::vector<int64_t> received;  // by rank and expert

  int64_t chunks() const { return std::min<int64_t>(experts, 8); }
  // Rows of this rank's experts by rank and expert, and those of other ranks' experts.
  const std::vector<int64_t>& here() const { return exchange_first ? received : sent; }
  const std::vector<int64_t>& away() const { return exchange_first ? sent : received; }
};

int64_t Sum(const std::vector<int64_t>& counts);

// Reads and checks everything but values. Not collective.
Result<ExpertsPlan> PlanExperts(const OpContext& op);

// One of the four schemas. `first`: the exchange comes first.
OpSchema ExpertsSchema(std::string_view type, bool first, bool scaled);

}  // namespace npumesh::fused

#endif  // NPUMESH_GRAPH_OPS_FUSED_EXPERTS_H_
