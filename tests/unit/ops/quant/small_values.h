// Tensors of 8-bit floats and of block scales, for the tests of operators that read them.
#ifndef NPUMESH_TESTS_UNIT_OPS_QUANT_SMALL_VALUES_H_
#define NPUMESH_TESTS_UNIT_OPS_QUANT_SMALL_VALUES_H_

#include <cmath>
#include <vector>

#include "graph/ops/toolbox/values/cast.h"
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {

// The float32 values of a tensor that holds 8-bit floats, as doubles; other tensors: ToDoubles.
inline std::vector<double> Wide(const Tensor& tensor) {
  const ConvertFn convert = FindConvert(tensor.dtype(), DataType::kDouble);
  std::vector<double> values(static_cast<size_t>(tensor.elements()));
  if (convert == nullptr) return Integers(tensor);
  convert(tensor.data(), values.data(), values.size());
  return values;
}

// Rounds float32 values to an 8-bit type.
inline Tensor Narrow(DataType dtype, const Tensor& wide) {
  Tensor narrow = Tensor::Allocate({dtype, wide.shape()});
  FindConvert(DataType::kFloat, dtype)(wide.data(), narrow.mutable_data(),
                                       static_cast<size_t>(wide.elements()));
  return narrow;
}

// The attribute that names a dtype.
inline AttrValue TypeAttr(DataType dtype) {
  return AttrValue::Int(static_cast<int64_t>(dtype));
}

// Small values of an 8-bit type that sum without rounding: multiples of 1/4 up to 2.
inline Tensor Quarters(DataType dtype, const Shape& shape, int seed) {
  std::vector<double> values = ToDoubles(Noise(DataType::kFloat, shape, seed, 8));
  for (double& value : values) value = std::floor(value) / 4;
  return Narrow(dtype, FromDoubles(DataType::kFloat, shape, values));
}

// Powers of two from 2^-2 to 2^1 as float8_e8m0.
inline Tensor Powers(const Shape& shape, int seed) {
  std::vector<uint8_t> bytes(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(125 + (i * 7 + static_cast<size_t>(seed) * 3 + i / 3) % 4);
  }
  return Make<uint8_t>(DataType::kFloat8E8M0, shape, bytes);
}
inline double PowerAt(const Tensor& tensor, int64_t index) {
  return std::ldexp(1.0, static_cast<int>(tensor.as<uint8_t>()[static_cast<size_t>(index)]) - 127);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_QUANT_SMALL_VALUES_H_
