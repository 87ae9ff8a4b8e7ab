// The kernels of LayerNormV4, RmsNorm and AddRmsNorm, and of the operators that LayerNorm and
// RmsNorm are written out with (passes/fusion/fuse_layer_norm.cc, fuse_rms_norm.cc).
#ifndef NPUMESH_GRAPH_OPS_REDUCE_NORM_H_
#define NPUMESH_GRAPH_OPS_REDUCE_NORM_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "graph/ops/core/define.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// Threads that share rows out.
struct RowParts {
  int threads = 1;  // that there are
  int count = 1;    // that are worth it; found with the memory
};

// y = x / sqrt(mean(x^2) + epsilon) * gamma for `rows` rows of `columns` elements, statistics in
// float32. Types are float16, bfloat16 or float32.
struct RmsNormPlan : Planned {
  int64_t rows = 0;
  int64_t columns = 0;  // elements of gamma
  int x_slot = 0;
  std::optional<int> x2_slot;  // of the type of x: x + x2 is normalised, and is output 2
  int gamma_slot = 1;
  DataType x_dtype = DataType::kFloat, gamma_dtype = DataType::kFloat, y_dtype = DataType::kFloat;
  double epsilon = 0;
  bool adds_one = false;   // to gamma
  bool rounds = false;     // the quotient is rounded to y_dtype before it is multiplied by gamma
  bool gives_rstd = true;  // output 1: the reciprocal roots, float32
  RowParts parts;
  Workspace<float> gamma_row;
  Workspace<float> x_row, x2_row, y_row;  // of each part
};

// A vector over the columns, or none.
struct ColumnInput {
  std::optional<int> slot;
  DataType dtype = DataType::kUndefined;
  Workspace<float> row;
};

// y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * gamma + beta for `rows` rows of
// `columns` elements, statistics in float32. x is slot 0. Types are float16, bfloat16 or float32.
struct LayerNormPlan : Planned {
  int64_t rows = 1, columns = 1;
  DataType x_dtype = DataType::kFloat, y_dtype = DataType::kFloat;
  ColumnInput gamma, beta;
  double epsilon = 0;
  bool gives_statistics = true;  // outputs 1 and 2: means and reciprocal roots, float32
  RowParts parts;
  Workspace<float> x_row, y_row;  // of each part
};

// These take the memory that the plan needs.
std::unique_ptr<Kernel> MakeRmsNormKernel(RmsNormPlan plan);
std::unique_ptr<Kernel> MakeLayerNormKernel(LayerNormPlan plan);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_REDUCE_NORM_H_
