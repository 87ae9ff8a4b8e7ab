// Products of two matrices of 8-bit numbers with their scales, as fused operators take them for the
// part of the rows that is there.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_SCALED_MATMUL_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_SCALED_MATMUL_H_

#include <memory>

#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {

// y[m, n] = (x[m, k] w[k, n] + bias) * row scale * column scale, computed in float32 and rounded
// once; int8 operands are summed exactly before. A caller may give other addresses for the slots
// than those of the whole inputs.
struct ScaledMatmul {
  int x_slot = -1, w_slot = -1;
  int row_scale_slot = -1;     // float32: one, or one for each row
  bool scale_of_rows = false;  // the latter
  Factors column_scale;        // one, or one for each column
  Factors bias;                // absent, one, or one for each column
  DataType x_dtype = DataType::kUndefined, w_dtype = DataType::kUndefined;
  DataType y_dtype = DataType::kUndefined;  // float16, bfloat16 or float32
  bool transposed_w = false;
  int64_t m = 0, n = 0, k = 0;
  int threads = 1;
};

std::unique_ptr<Kernel> MakeScaledMatmul(const ScaledMatmul& form);

// Error (kUnsupported) unless two inputs can be multiplied: both int8, both HIFLOAT8, or each one
// of the two FLOAT8.
Status ExpectEightBits(const OpContext& op, std::string_view x, std::string_view w);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_SCALED_MATMUL_H_
