// The one form to which QuantBatchMatmulV3, QuantBatchMatmulV4, WeightQuantBatchMatmulV2 and
// QuantBatchMatmulInplaceAdd are brought, and the function that runs it.
#ifndef NPUMESH_GRAPH_OPS_QUANT_QUANT_MATMUL_H_
#define NPUMESH_GRAPH_OPS_QUANT_QUANT_MATMUL_H_

#include <memory>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/product_plan.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {

class Int8Product;

// Rows and columns of an operand after its transposition, and what stands in front of them.
struct MatmulSide {
  int64_t rows = 0, columns = 0;
  Shape batch;
};

// The operand's shape in elements: an int32 tensor carries eight int4 in each element. Objects to
// what is no matrix.
MatmulSide SideOf(Check& check, const OpContext& op, std::string_view port, bool transposed);

struct QuantMatmul : ProductPlan {
  MatmulSide left;   // slot 0
  MatmulSide right;  // slot 1
  bool transposed1 = false, transposed2 = false;
  DataType x_dtype = DataType::kUndefined, w_dtype = DataType::kUndefined;
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
  bool adds = false;                    // to what is in the (float32) output
  std::shared_ptr<Int8Product> packed;  // null: the weights are read in each run

  Shape y() const {
    Shape shape = batch;
    shape.mutable_dims().insert(shape.mutable_dims().end(), {left.rows, right.columns});
    return shape;
  }
};

// Reads the operands: types (int4 for int32, which carries eight of them), sides and `batch`.
// Objects to sides that cannot be multiplied.
void ReadSides(Check& check, const OpContext& op, std::string_view x, std::string_view w,
               QuantMatmul& plan);

// Reads the bias: absent, one for each column, or one for each column of every matrix.
void ReadMatrixBias(Check& check, const OpContext& op, QuantMatmul& plan);

// The plan, which has everything but its output and its scratch.
Result<QuantMatmul> Finished(Check& check, const OpContext& op, QuantMatmul plan);

// Chooses how sums are formed, and packs weights that are one constant int8 matrix. Errors as
// Int8Product::Make.
Status PackWeights(const OpContext& op, QuantMatmul* plan);

Status RunQuantMatmul(const QuantMatmul& plan, const KernelArgs& args);

// QuantBatchMatmulV4 and QuantBatchMatmulInplaceAdd. Part of RegisterQuantMatmulOps.
void RegisterBlockMatmulOps(OpRegistry& registry);
// QuantMatmulDequant and QuantGroupedMatmulDequant. Part of RegisterQuantMatmulOps.
void RegisterOnlineMatmulOps(OpRegistry& registry);
// QuantMatmulReduceSum and QuantGroupedMatmulInplaceAdd. Part of RegisterQuantMatmulOps.
void RegisterSummedMatmulOps(OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_QUANT_QUANT_MATMUL_H_
