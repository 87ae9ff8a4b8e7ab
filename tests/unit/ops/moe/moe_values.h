// What the tests of routing share.
#ifndef NPUMESH_TESTS_UNIT_OPS_MOE_MOE_VALUES_H_
#define NPUMESH_TESTS_UNIT_OPS_MOE_MOE_VALUES_H_

#include <vector>

#include "tests/unit/op_test.h"

namespace npumesh {

// The experts of 4 tokens with 2 choices each, by token and choice.
inline const std::vector<int32_t> kIds = {2, 0, 1, 2, 3, 0, 2, 1};

// An int32 tensor. REQUIRES: as many values as the shape has elements.
inline Tensor Ints(const Shape& shape, const std::vector<int32_t>& values) {
  return Make<int32_t>(DataType::kInt32, shape, values);
}
inline Tensor Ints(const std::vector<int32_t>& values) {
  return Ints({static_cast<int64_t>(values.size())}, values);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_MOE_MOE_VALUES_H_
