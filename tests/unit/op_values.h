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
Tensor FromDoubles(DataType dtype, Shape shape, const std::vector<double>& values);

std::vector<double> ToDoubles(const Tensor& tensor);

// Small integers, different from element to element, exact in every dtype: 0 ... 6 (0 and 1 for
// bool).
Tensor Pattern(DataType dtype, Shape shape, int seed = 1);

// Rounded to the dtype and back.
double Rounded(DataType dtype, double value);

// Distance of neighbouring numbers of the dtype around `value`.
double Ulp(DataType dtype, double value);

const std::vector<DataType>& AllDtypes();

// Positions of a shape in C order.
std::vector<std::vector<int64_t>> Positions(const Shape& shape);

// Number of a position in C order.
size_t Index(const Shape& shape, const std::vector<int64_t>& at);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OP_VALUES_H_
