// Convolutions of bytes that are drawn, and the sums that they mean.
#ifndef NPUMESH_TESTS_UNIT_OPS_IMAGE_DRAWN_CONVOLUTION_H_
#define NPUMESH_TESTS_UNIT_OPS_IMAGE_DRAWN_CONVOLUTION_H_

#include <random>
#include <span>
#include <vector>

#include "tests/unit/op_values.h"
#include "tests/unit/ops/image/image_values.h"

namespace npumesh {

using Dims = std::vector<int64_t>;

// A drawn convolution; x is NCHW, the filter OIHW.
struct DrawnConvolution {
  Shape x, filter;
  int64_t groups = 1, offset_x = 0;
  Dims strides, dilations, pads;

  explicit DrawnConvolution(std::mt19937& random) {
    const auto between = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(random);
    };
    groups = between(1, 3);
    filter = {groups * between(1, 5), between(1, 6), between(1, 4), between(1, 3)};
    for (int side = 0; side < 2; ++side) {
      strides.push_back(between(1, 3));
      dilations.push_back(between(1, 2));
    }
    for (int side = 0; side < 4; ++side) pads.push_back(between(0, 2));
    x = {between(1, 2), groups * filter[1], between(7, 20), between(7, 20)};
    offset_x = between(0, 1) == 0 ? 0 : between(-128, 127);
  }

  int64_t Extent(int side) const {
    const auto s = static_cast<size_t>(side);
    const int64_t reach = dilations[s] * (filter[2 + side] - 1) + 1;
    return (x[2 + side] + pads[2 * s] + pads[2 * s + 1] - reach) / strides[s] + 1;
  }
  Shape y() const { return {x[0], filter[0], Extent(0), Extent(1)}; }

  // The sum at a position of y, of images and weights less their zeros; `beyond` stands around the
  // image.
  template <typename X, typename W>
  int64_t Sum(const Dims& at, std::span<const X> image, std::span<const W> weights, int64_t beyond,
              int64_t zero = 0, int64_t filter_zero = 0) const {
    int64_t sum = 0;
    const int64_t first = at[1] / (filter[0] / groups) * filter[1];
    for (const Dims& tap : Positions(Shape({filter[1], filter[2], filter[3]}))) {
      const int64_t row = at[2] * strides[0] + tap[1] * dilations[0] - pads[0];
      const int64_t column = at[3] * strides[1] + tap[2] * dilations[1] - pads[2];
      const bool inside = row >= 0 && row < x[2] && column >= 0 && column < x[3];
      const int64_t pixel = inside ? image[Index(x, {at[0], first + tap[0], row, column})] : beyond;
      const int64_t weight = weights[Index(filter, {at[1], tap[0], tap[1], tap[2]})];
      sum += (pixel - zero) * (weight - filter_zero);
    }
    return sum;
  }
};

inline Tensor Bytes(std::mt19937& random, const Shape& shape, DataType dtype = DataType::kInt8) {
  Tensor bytes = Tensor::Allocate({dtype, shape});
  for (int64_t i = 0; i < shape.elements(); ++i) {
    bytes.mutable_data()[i] = static_cast<std::byte>(random());
  }
  return bytes;
}

inline AttrValue OfImage(const Dims& numbers, bool last) {
  return AttrValue::Ints(last ? Dims{1, numbers[0], numbers[1], 1}
                              : Dims{1, 1, numbers[0], numbers[1]});
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_IMAGE_DRAWN_CONVOLUTION_H_
