// Elements moved one by one.
#ifndef NPUMESH_TESTS_UNIT_OPS_SHAPE_SHAPE_VALUES_H_
#define NPUMESH_TESTS_UNIT_OPS_SHAPE_SHAPE_VALUES_H_

#include "tests/unit/op_values.h"

namespace npumesh {

// The element of x for each position of y, copied with the width of the dtype.
template <typename From>
Tensor Rearranged(const Tensor& x, Shape y_shape, From from) {
  Tensor y = Tensor::Allocate({x.dtype(), std::move(y_shape)});
  const auto size = static_cast<size_t>(BitsOf(x.dtype())) / 8;
  size_t i = 0;
  for (const std::vector<int64_t>& at : Positions(y.shape())) {
    std::memcpy(y.mutable_data() + i++ * size, x.data() + Index(x.shape(), from(at)) * size, size);
  }
  return y;
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_SHAPE_SHAPE_VALUES_H_
