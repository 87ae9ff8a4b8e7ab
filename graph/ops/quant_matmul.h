// The one form to which QuantBatchMatmulV3, QuantBatchMatmulV4, WeightQuantBatchMatmulV2 and
// QuantBatchMatmulInplaceAdd are brought, and the kernel that computes it. Ops reference 5.6, 5.19.
#ifndef NPUMESH_GRAPH_OPS_QUANT_MATMUL_H_
#define NPUMESH_GRAPH_OPS_QUANT_MATMUL_H_

#include <memory>

#include "graph/ops/blocked_product.h"
#include "graph/ops/op_registry.h"

namespace npumesh {

// Rows and columns of an operand after its transposition, and what stands in front of them.
struct MatmulSide {
  int64_t rows = 0;
  int64_t columns = 0;
  Shape batch;
};

// The operand's shape in elements: an int32 tensor carries eight int4 in each element. Error
// (kInvalidArgument): it is no matrix.
Result<MatmulSide> SideOf(const OpContext& op, std::string_view port, bool transposed);

// int4 for int32, which carries eight of them.
inline DataType StoredType(DataType dtype) {
  return dtype == DataType::kInt32 ? DataType::kInt4 : dtype;
}

struct QuantMatmul {
  MatmulSide left;   // slot 0
  MatmulSide right;  // slot 1
  bool transposed1 = false;
  bool transposed2 = false;
  DataType x_dtype = DataType::kUndefined;
  DataType w_dtype = DataType::kUndefined;
  DataType y_dtype = DataType::kUndefined;
  bool integers = true;
  Dequant dequant;
  WeightScale weight_scale;
  BlockScale left_scale;  // of each matrix, or of every one its own
  BlockScale right_scale;
  int64_t left_factors = 0;  // from matrix to matrix; 0: shared
  int64_t right_factors = 0;
  Factors out_scale;  // of an int8 result, applied after everything else
  Factors out_offset;
  Shape batch;
  bool adds = false;  // to what is in the (float32) output

  Shape y() const {
    Shape shape = batch;
    shape.mutable_dims().insert(shape.mutable_dims().end(), {left.rows, right.columns});
    return shape;
  }
};

// Sets `batch`. Error (kInvalidArgument): the sides cannot be multiplied.
Status JoinSides(const OpContext& op, QuantMatmul& plan);

// Error (kInvalidArgument) unless there is no bias, or one for each column, or for each column of
// every matrix.
Status CheckBias(const OpContext& op, const QuantMatmul& plan);

// Packs weights that are one constant int8 matrix. Errors as Int8Product::Make.
Result<std::unique_ptr<Kernel>> MakeQuantMatmulKernel(const OpContext& op, QuantMatmul plan);

// QuantBatchMatmulV4 and QuantBatchMatmulInplaceAdd. Part of RegisterQuantMatmulOps.
void RegisterBlockMatmulOps(OpRegistry& registry);
// QuantMatmulDequant and QuantGroupedMatmulDequant. Part of RegisterQuantMatmulOps.
void RegisterOnlineMatmulOps(OpRegistry& registry);
// QuantMatmulReduceSum and QuantGroupedMatmulInplaceAdd. Part of RegisterQuantMatmulOps.
void RegisterSummedMatmulOps(OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_QUANT_MATMUL_H_
