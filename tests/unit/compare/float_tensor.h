// Tensors of float32 for the tests of graph/compare.
#ifndef NPUMESH_TESTS_UNIT_COMPARE_FLOAT_TENSOR_H_
#define NPUMESH_TESTS_UNIT_COMPARE_FLOAT_TENSOR_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A vector of these elements.
inline Tensor Floats(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::FromVector(TensorType{DataType::kFloat, {count}}, values);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_COMPARE_FLOAT_TENSOR_H_
