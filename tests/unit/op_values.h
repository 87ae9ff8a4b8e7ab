// Tensors of any dtype from and to doubles, so that one reference in double serves all dtypes.
#ifndef NPUMESH_TESTS_UNIT_OP_VALUES_H_
#define NPUMESH_TESTS_UNIT_OP_VALUES_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/base/float16.h"
#include "tests/unit/op_test.h"

namespace npumesh {

// Calls f(T()) with the storage type of a dtype.
template <typename F>
auto WithStorage(DataType dtype, F f) {
  switch (dtype) {
    case DataType::kDouble:
      return f(double());
    case DataType::kFloat16:
      return f(Float16());
    case DataType::kBfloat16:
      return f(Bfloat16());
    case DataType::kBool:
    case DataType::kUint8:
      return f(uint8_t());
    case DataType::kInt8:
      return f(int8_t());
    case DataType::kInt16:
      return f(int16_t());
    case DataType::kUint16:
      return f(uint16_t());
    case DataType::kInt32:
      return f(int32_t());
    case DataType::kUint32:
      return f(uint32_t());
    case DataType::kInt64:
      return f(int64_t());
    case DataType::kUint64:
      return f(uint64_t());
    default:
      return f(float());
  }
}

// A double as an element: 16-bit floats through float, so `value` should be a float already.
template <typename T>
T ElementOf(double value) {
  if constexpr (std::is_class_v<T>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
double ValueOf(T element) {
  if constexpr (std::is_class_v<T>) {
    return static_cast<float>(element);
  } else {
    return static_cast<double>(element);
  }
}

// Rounds each value to the dtype. REQUIRES: as many values as the shape has elements.
inline Tensor FromDoubles(DataType dtype, Shape shape, const std::vector<double>& values) {
  EXPECT_EQ(static_cast<size_t>(shape.elements()), values.size()) << shape.ToString();
  Tensor tensor = Tensor::Allocate({dtype, std::move(shape)});
  WithStorage(dtype, [&](auto storage) {
    using T = decltype(storage);
    std::transform(values.begin(), values.end(), reinterpret_cast<T*>(tensor.mutable_data()),
                   ElementOf<T>);
  });
  return tensor;
}

inline std::vector<double> ToDoubles(const Tensor& tensor) {
  std::vector<double> values;
  WithStorage(tensor.dtype(), [&](auto storage) {
    for (const auto element : tensor.as<decltype(storage)>()) values.push_back(ValueOf(element));
  });
  return values;
}

// Small integers, different from element to element, exact in every dtype: 0 ... 6 (0 and 1 for
// bool).
inline Tensor Pattern(DataType dtype, Shape shape, int seed = 1) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t mixed = i * 5 + static_cast<size_t>(seed) * 3 + i / 7;
    values[i] = static_cast<double>(mixed % (dtype == DataType::kBool ? 2 : 7));
  }
  return FromDoubles(dtype, std::move(shape), values);
}

// Rounded to the dtype and back.
inline double Rounded(DataType dtype, double value) {
  return ToDoubles(FromDoubles(dtype, {1}, {value}))[0];
}

// Distance of neighbouring numbers of the dtype around `value`.
inline double Ulp(DataType dtype, double value) {
  const int digits = dtype == DataType::kBfloat16  ? 8
                     : dtype == DataType::kFloat16 ? 11
                     : dtype == DataType::kDouble  ? 53
                                                   : 24;
  return std::ldexp(1.0, std::max(std::ilogb(value == 0 ? 1e-30 : value), -14) - digits + 1);
}

inline const std::vector<DataType>& AllDtypes() {
  static const std::vector<DataType> all = {
      DataType::kFloat, DataType::kFloat16, DataType::kBfloat16, DataType::kDouble,
      DataType::kInt8,  DataType::kInt16,   DataType::kInt32,    DataType::kInt64,
      DataType::kUint8, DataType::kUint16,  DataType::kUint32,   DataType::kUint64,
      DataType::kBool};
  return all;
}

// Positions of a shape in C order.
inline std::vector<std::vector<int64_t>> Positions(const Shape& shape) {
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

// Number of a position in C order.
inline size_t Index(const Shape& shape, const std::vector<int64_t>& at) {
  int64_t index = 0;
  for (size_t d = 0; d < at.size(); ++d) index = index * shape.dims()[d] + at[d];
  return static_cast<size_t>(index);
}

// The message of a call that must fail with `code` contains every one of `words`.
inline void ExpectFails(const OpRegistry& registry, const OpCall& call, Code code,
                        const std::vector<std::string>& words) {
  const Status status = FailOf(registry, call);
  EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_NE(status.message().find("node_under_test"), std::string_view::npos) << status.ToString();
  for (const std::string& word : words) {
    EXPECT_NE(status.message().find(word), std::string_view::npos)
        << "no \"" << word << "\" in: " << status.ToString();
  }
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OP_VALUES_H_
