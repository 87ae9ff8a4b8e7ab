// What MatmulAllReduce, AllGatherMatmul and MatmulReduceScatter share: the product of one rank. Ops
// reference 5.17.
#ifndef NPUMESH_GRAPH_OPS_FUSED_MATMUL_H_
#define NPUMESH_GRAPH_OPS_FUSED_MATMUL_H_

#include <memory>
#include <vector>

#include "graph/ops/collective.h"
#include "graph/ops/numbers.h"

namespace npumesh::fused {

// op(x1)[m, k] op(x2)[k, n] of this rank.
struct Local {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transposed1 = false;
  bool transposed2 = false;
  DataType dtype = DataType::kUndefined;  // of x1
  std::vector<int64_t> front;             // dimensions of x1 in front of k
  Factors bias;
};

Result<Local> PlanLocal(const OpContext& op);

// Error unless the product is one of floats of the same type.
Status ExpectFloats(const OpContext& op);

// The product of `m` rows of floats as the matmul family computes it, bias included.
Result<std::unique_ptr<Kernel>> MakeProduct(const OpContext& op, const Local& plan, int64_t m,
                                            DataType y_dtype);

// Error unless the attribute reduce_op is "sum".
Status ExpectSum(const OpContext& op);

// Bytes up to the next multiple of 64.
inline uint64_t RoundedUp(uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

inline uint64_t FloatBytes(int64_t elements) {
  return static_cast<uint64_t>(elements) * sizeof(float);
}

// Parts of RegisterFusedMatmulOps.
void RegisterAllReduceMatmul(OpRegistry& registry);  // MatmulAllReduce
void RegisterRowMatmuls(OpRegistry& registry);       // AllGatherMatmul, MatmulReduceScatter

}  // namespace npumesh::fused

#endif  // NPUMESH_GRAPH_OPS_FUSED_MATMUL_H_
