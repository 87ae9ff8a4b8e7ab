#include "graph/compare/measures/elements.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

// Elements stand `stride` bytes apart.
template <typename T>
void Widen(const Tensor& tensor, size_t stride, std::vector<double>& out) {
  const std::byte* next = tensor.data();
  for (double& element : out) {
    T value;
    std::memcpy(&value, next, sizeof value);
    next += stride;
    element = static_cast<double>(NumberOf(value));
  }
}

// OCP 8-bit floating point: E5M2 has infinities, E4M3FN only one NaN for each sign.
double SmallFloat(uint8_t bits, int mantissa_bits, int bias, bool has_infinity) {
  const int exponent_bits = 7 - mantissa_bits;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x80) != 0 ? -1.0 : 1.0;
  const bool top = exponent == (1 << exponent_bits) - 1;
  if (has_infinity && top && mantissa == 0) return sign * std::numeric_limits<double>::infinity();
  if (top && (has_infinity || mantissa == (1 << mantissa_bits) - 1)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1.0 + fraction, exponent - bias));
}

void WidenSmallFloats(const Tensor& tensor, bool e5m2, std::vector<double>& out) {
  const std::byte* next = tensor.data();
  for (double& element : out) {
    const auto bits = static_cast<uint8_t>(*next++);
    element = e5m2 ? SmallFloat(bits, 2, 15, true) : SmallFloat(bits, 3, 7, false);
  }
}

}  // namespace

bool HasNumbers(DataType dtype) {
  switch (dtype) {
    case DataType::kBool:
    case DataType::kComplex64:
    case DataType::kComplex128:
    case DataType::kFloat8E5M2:
    case DataType::kFloat8E4M3Fn:
      return true;
    default:
      return IsFloating(dtype) || IsInteger(dtype);
  }
}

Result<std::vector<double>> ElementsOf(const Tensor& tensor) {
  if (!HasNumbers(tensor.dtype())) {
    return Error(Code::kUnsupported, "{}: its elements cannot be read as numbers",
                 tensor.type().ToString());
  }
  std::vector<double> out(static_cast<size_t>(tensor.elements()));
  const auto stride = static_cast<size_t>(BitsOf(tensor.dtype()) / 8);
  VisitStored(
      PartOf(tensor.dtype()), [&]<typename T>() { Widen<T>(tensor, stride, out); },
      [&] { WidenSmallFloats(tensor, tensor.dtype() == DataType::kFloat8E5M2, out); });
  return out;
}

std::vector<float> AsFloats(const std::vector<double>& elements) {
  return std::vector<float>(elements.begin(), elements.end());
}

}  // namespace npumesh
