// The kernels of the operators that LayerNorm and RmsNorm are written out with
// (passes/fusion/fuse_layer_norm.cc, fuse_rms_norm.cc): the programs of LayerNormV4 and RmsNorm.
#ifndef NPUMESH_GRAPH_OPS_REDUCE_NORM_H_
#define NPUMESH_GRAPH_OPS_REDUCE_NORM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh {

// A norm of `rows` rows of `columns` elements, statistics in float32. Slot 0 has the rows; the
// slots after it have a vector over the columns each. Types are float16, bfloat16 or float32.
struct NormForm {
  int64_t rows = 0, columns = 0;
  DataType x = DataType::kFloat, y = DataType::kFloat;
  std::vector<DataType> vectors;
  double epsilon = 0;
  bool rounds = false;  // RmsNorm: the quotient is rounded to y before it is multiplied by gamma
  int threads = 1;
};

// y = x / sqrt(mean(x^2) + epsilon) * gamma. REQUIRES: one vector.
std::unique_ptr<Kernel> MakeRmsNormKernel(const NormForm& form);
// y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), times a first vector, plus a second
// one.
std::unique_ptr<Kernel> MakeLayerNormKernel(const NormForm& form);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_REDUCE_NORM_H_
