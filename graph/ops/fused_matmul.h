// What the products that are fused with a collective share: the product of one rank. Ops reference
// 5.17.
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

// How the operators tell it: names of attributes, and how many times the columns of x1 the product
// goes over, which an exchange in front of it may have joined.
struct LocalForm {
  std::string_view transposed1 = "is_trans_a";
  std::string_view transposed2 = "is_trans_b";
  int64_t joined = 1;
};

Result<Local> PlanLocal(const OpContext& op, const LocalForm& form = {});

// Error unless the product is one of floats of the same type.
Status ExpectFloats(const OpContext& op);

// The product of `m` rows of floats as the matmul family computes it, bias included.
Result<std::unique_ptr<Kernel>> MakeProduct(const OpContext& op, const Local& plan, int64_t m,
                                            DataType y_dtype);

// Error unless the attribute reduce_op is "sum".
Status ExpectSum(const OpContext& op);

// Error when one of the inputs is fed, or one of the attributes is not 0.
Status RefuseInputs(const OpContext& op, std::initializer_list<std::string_view> ports);
Status RefuseModes(const OpContext& op, std::initializer_list<std::string_view> attributes);

// The number of members of the node's group, and this rank. Error unless the attribute `size`
// says the same; 0 there says nothing.
struct Ring {
  int64_t ranks = 0;
  int64_t rank = 0;
};
Result<Ring> RingOf(const OpContext& op, std::string_view size);

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
void RegisterAllToAllMatmuls(OpRegistry& registry);  // AlltoAllMatmul, MatmulAlltoAll
void RegisterExpertMatmuls(OpRegistry& registry);    // AlltoAllvGroupedMatMul ...
void RegisterQuantReductions(OpRegistry& registry);  // QuantAllReduce, QuantReduceScatter

}  // namespace npumesh::fused

#endif  // NPUMESH_GRAPH_OPS_FUSED_MATMUL_H_
