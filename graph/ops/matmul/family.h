// The matmul family: products of floats, and what is fused after them.
#ifndef NPUMESH_GRAPH_OPS_MATMUL_FAMILY_H_
#define NPUMESH_GRAPH_OPS_MATMUL_FAMILY_H_

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// All of them.
void RegisterMatmulFamily(OpRegistry& registry);

// Each lives in a file of its name.
void RegisterMatmulOps(OpRegistry& registry);           // MatMul, BatchMatMul, FusedMatMul ...
void RegisterTransposeMatmulOps(OpRegistry& registry);  // TransposeBatchMatMul ...
void RegisterLoraOps(OpRegistry& registry);             // AddLora
void RegisterRecurrentOps(OpRegistry& registry);        // DynamicRNN, DynamicGRUV2
void RegisterGemmOps(OpRegistry& registry);             // GEMM
void RegisterLinearAlgebraOps(OpRegistry& registry);    // MatrixTriangularSolve, MatrixInverse ...

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_MATMUL_FAMILY_H_
