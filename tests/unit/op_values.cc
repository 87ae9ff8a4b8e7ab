#include "tests/unit/op_values.h"

namespace npumesh {

Tensor FromDoubles(DataType dtype, Shape shape, const std::vector<double>& values) {
  EXPECT_EQ(static_cast<size_t>(shape.elements()), values.size()) << shape.ToString();
  Tensor tensor = Tensor::Allocate({dtype, std::move(shape)});
  WithStorage(dtype, [&](auto storage) {
    using T = decltype(storage);
    std::transform(values.begin(), values.end(), reinterpret_cast<T*>(tensor.mutable_data()),
                   ElementOf<T>);
  });
  return tensor;
}

std::vector<double> ToDoubles(const Tensor& tensor) {
  std::vector<double> values;
  WithStorage(tensor.dtype(), [&](auto storage) {
    for (const auto element : tensor.as<decltype(storage)>()) values.push_back(ValueOf(element));
  });
  return values;
}

Tensor Pattern(DataType dtype, Shape shape, int seed) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t mixed = i * 5 + static_cast<size_t>(seed) * 3 + i / 7;
    values[i] = static_cast<double>(mixed % (dtype == DataType::kBool ? 2 : 7));
  }
  return FromDoubles(dtype, std::move(shape), values);
}

double Rounded(DataType dtype, double value) {
  return ToDoubles(FromDoubles(dtype, {1}, {value}))[0];
}

double Ulp(DataType dtype, double value) {
  const int digits = dtype == DataType::kBfloat16  ? 8
                     : dtype == DataType::kFloat16 ? 11
                     : dtype == DataType::kDouble  ? 53
                                                   : 24;
  return std::ldexp(1.0, std::max(std::ilogb(value == 0 ? 1e-30 : value), -14) - digits + 1);
}

const std::vector<DataType>& AllDtypes() {
  static const std::vector<DataType> all = {
      DataType::kFloat, DataType::kFloat16, DataType::kBfloat16, DataType::kDouble,
      DataType::kInt8,  DataType::kInt16,   DataType::kInt32,    DataType::kInt64,
      DataType::kUint8, DataType::kUint16,  DataType::kUint32,   DataType::kUint64,
      DataType::kBool};
  return all;
}

std::vector<std::vector<int64_t>> Positions(const Shape& shape) {
  std::vector<std::vector<int64_t>> positions;
  std::vector<int64_t> at(shape.dims().size(), 0);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    positions.push_back(at);
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < shape.dims()[d]) break;
      at[d] = 0;
    }
  }
  return positions;
}

size_t Index(const Shape& shape, const std::vector<int64_t>& at) {
  int64_t index = 0;
  for (size_t d = 0; d < at.size(); ++d) index = index * shape.dims()[d] + at[d];
  return static_cast<size_t>(index);
}

}  // namespace npumesh
