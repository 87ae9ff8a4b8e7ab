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
class Int8WeightProduct;

// An operand: rows and columns after its transposition, and what stands in front of them.
struct MatmulSide {
  int slot = -1;
  DataType dtype = DataType::kUndefined;  // int4 for int32, which carries eight of them
  bool transposed = false;
  int64_t rows = 0, columns = 0;
  Shape batch;
  BlockScale scale;       // of each matrix, or of every one its own
  int64_t by_matrix = 0;  // factors from matrix to matrix; 0: shared

  // The matrix for number `index` of the batch `all`; it refers to `own`, its scale.
  StoredMatrix Matrix(const KernelArgs& args, const Shape& all, int64_t index,
                      BlockScale& own) const;
};

struct QuantMatmul : ProductPlan {
  MatmulSide left, right;
  DataType y_dtype = DataType::kUndefined;
  bool integers = true;
  Dequant dequant;
  WeightScale weight_scale;
  Factors out_scale, out_offset;  // of an int8 result, applied after everything else
  Shape batch;
  bool adds = false;  // to what is in the (float32) output
  // Null: the weights are read in each run.
  std::shared_ptr<Int8Product> packed;             // of integers
  std::shared_ptr<Int8WeightProduct> dequantised;  // of floats and int8

  Shape y() const {
    Shape shape = batch;
    shape.mutable_dims().insert(shape.mutable_dims().end(), {left.rows, right.columns});
    return shape;
  }
};

// The operands x1 and x2, which the attributes transpose_x1 and transpose_x2 transpose.
inline constexpr ProductTrait kQuantProduct = {.left_transposed = "transpose_x1",
                                               .right_transposed = "transpose_x2"};

// Reads the operands and the batch. Objects to sides that are no matrices or cannot be multiplied.
void ReadSides(Check& check, const OpContext& op, const ProductTrait& product, QuantMatmul& plan);

// Sets the output and the scratch of a plan that has everything else.
QuantMatmul Finished(const OpContext& op, QuantMatmul plan);

// Chooses how sums are formed, and packs weights that are one constant int8 matrix. Errors as
// Int8Product::Make and Int8WeightProduct::Make.
Status PackWeights(const OpContext& op, QuantMatmul* plan);

Status RunQuantMatmul(const QuantMatmul& plan, const KernelArgs& args);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_QUANT_QUANT_MATMUL_H_
