// What the tests of quantised operators share.
#ifndef NPUMESH_TESTS_UNIT_OPS_QUANT_QUANT_VALUES_H_
#define NPUMESH_TESTS_UNIT_OPS_QUANT_QUANT_VALUES_H_

#include <cmath>
#include <string>
#include <vector>

#include "tests/unit/op_values.h"

namespace npumesh {

// Values in [-width, width] without a period, exact in the dtype.
inline Tensor Noise(DataType dtype, const Shape& shape, int seed, double width = 1) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = std::sin(static_cast<double>(i) * 12.9898 + seed * 78.233) * 43758.5453;
    values[i] = width * (2 * (x - std::floor(x)) - 1);
    if (IsInteger(dtype)) values[i] = std::floor(values[i]);
  }
  return FromDoubles(dtype, shape, values);
}

// int8 values in [-8, 7] packed two to a byte.
inline Tensor ToInt4(const Tensor& wide) {
  Tensor packed = Tensor::Allocate({DataType::kInt4, wide.shape()});
  const auto from = wide.as<int8_t>();
  for (size_t i = 0; i < from.size(); ++i) {
    packed.mutable_data()[i / 2] |= static_cast<std::byte>((from[i] & 15) << (i % 2 * 4));
  }
  return packed;
}

// The elements of an integer tensor, int4 included.
inline std::vector<double> Integers(const Tensor& tensor) {
  if (tensor.dtype() != DataType::kInt4) return ToDoubles(tensor);
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int nibble = static_cast<int>(tensor.data()[i / 2] >> (i % 2 * 4)) & 15;
    values.push_back(nibble < 8 ? nibble : nibble - 16);
  }
  return values;
}

inline double Clip(double value, DataType dtype) {
  const double most = dtype == DataType::kInt4 ? 7 : 127;
  return std::min(std::max(value, -most - 1), most);
}

// Results that are rounded to integers may differ by one where the exact value lies between two.
inline void ExpectRounded(const Tensor& got, const std::vector<double>& exact) {
  const std::vector<double> values = Integers(got);
  ASSERT_EQ(values.size(), exact.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], Clip(exact[i], got.dtype()), 0.5 + 1e-4) << "element " << i;
  }
}

inline void ExpectNear(const Tensor& got, const std::vector<double>& want, double scale = 1e-6) {
  const std::vector<double> values = ToDoubles(got);
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], want[i],
                0.51 * Ulp(got.dtype(), want[i]) + scale * (1 + std::fabs(want[i])))
        << "element " << i;
  }
}

inline std::vector<Tensor> MustRun(const OpCall& call, size_t outputs = 1) {
  const Result<std::vector<Tensor>> out = RunOp(call);
  EXPECT_TRUE(out.ok()) << out.status().ToString();
  return out.ok() ? *out : std::vector<Tensor>(outputs);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_QUANT_QUANT_VALUES_H_
