// Short tensors that tests of tolerances write down.
#ifndef NPUMESH_TESTS_UNIT_LAUNCH_FLOAT_ROW_H_
#define NPUMESH_TESTS_UNIT_LAUNCH_FLOAT_ROW_H_

#include <cstdint>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh {

// A float32 tensor of one dimension that holds `values`.
inline Tensor Floats(const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::FromVector(TensorType{DataType::kFloat, {count}}, values);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_LAUNCH_FLOAT_ROW_H_
