// OpRegistry: the operators npumesh can run, by type name.
#ifndef NPUMESH_GRAPH_OPS_OP_REGISTRY_H_
#define NPUMESH_GRAPH_OPS_OP_REGISTRY_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/operator.h"

namespace npumesh {

class OpRegistry {
 public:
  // REQUIRES: the type is not registered yet.
  void Add(Operator op);
  // The same operator under a second name (Constant for Const).
  void Alias(std::string_view type, std::string_view same_as);
  const Operator* Find(std::string_view type) const;
  // Up to `most` registered names that look like `type`, nearest first.
  std::vector<std::string> Nearest(std::string_view type, int most = 3) const;
  std::vector<std::string_view> Types() const;  // sorted

 private:
  std::map<std::string, Operator, std::less<>> ops_;
};

// Every built-in operator. Made once, immutable.
const OpRegistry& BuiltinOps();

// The families; each lives in the file of its name and is called once by BuiltinOps.
void RegisterStructureOps(OpRegistry& registry);    // Data, Const, Identity, Shape, Assign ...
void RegisterElementwiseOps(OpRegistry& registry);  // Add, Mul, Exp, Cast ...
void RegisterActivationOps(OpRegistry& registry);   // Relu, Gelu, Swish, SwiGlu ...
void RegisterCompareOps(OpRegistry& registry);      // Equal, SelectV2, MaskedFill ...
void RegisterReduceOps(OpRegistry& registry);       // ReduceSum, ReduceMean, ReduceMax
void RegisterMatmulOps(OpRegistry& registry);       // MatMul, MatMulV2, BatchMatMul
void RegisterNormOps(OpRegistry& registry);         // LayerNormV4, RmsNorm, AddRmsNorm, SoftmaxV2
void RegisterLayoutOps(OpRegistry& registry);       // Reshape, Transpose, ConcatV2, Range ...
void RegisterGatherOps(OpRegistry& registry);       // Gather, GatherV2
void RegisterCollectiveOps(OpRegistry& registry);   // HcomAllReduce ...
void RegisterAttentionOps(OpRegistry& registry);    // FusedInferAttentionScore, RotaryMul ...
void RegisterQuantOps(OpRegistry& registry);        // DynamicQuant, QuantBatchMatmulV3 ...
void RegisterMoeOps(OpRegistry& registry);          // MoeGatingTopK, MoeDistributeDispatchV2 ...
void RegisterFusedMatmulOps(OpRegistry& registry);  // MatmulAllReduce, AllGatherMatmul ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_OP_REGISTRY_H_
