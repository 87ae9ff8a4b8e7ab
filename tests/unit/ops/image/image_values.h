// Images with their channels second or last.
#ifndef NPUMESH_TESTS_UNIT_OPS_IMAGE_IMAGE_VALUES_H_
#define NPUMESH_TESTS_UNIT_OPS_IMAGE_IMAGE_VALUES_H_

#include "tests/unit/op_values.h"

namespace npumesh {

using Attrs = std::vector<std::pair<std::string, AttrValue>>;
using Ints = std::vector<int64_t>;

// x with the channels last instead of second.
inline Tensor ChannelsBehind(const Tensor& x) {
  Ints dims = x.shape().dims();
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  const std::vector<double> values = ToDoubles(x);
  std::vector<double> moved;
  for (Ints at : Positions(Shape(dims))) {
    std::rotate(at.begin() + 1, at.end() - 1, at.end());
    moved.push_back(values[Index(x.shape(), at)]);
  }
  return FromDoubles(x.dtype(), Shape(dims), moved);
}

// The attribute input_layout_info of an operator whose first input has its channels last.
inline AttrValue LastChannels() {
  ListAttr list;
  list.i = {0};
  list.s = {"NHWC"};
  return AttrValue(list);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_IMAGE_IMAGE_VALUES_H_
