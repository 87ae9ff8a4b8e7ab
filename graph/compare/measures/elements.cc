#include "graph/compare/measures/elements.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/float16.h"

namespace npumesh {
namespace {

template <typename T>
void Widen(const Tensor& tensor, size_t stride, std::vector<double>& out) {
  const std::byte* next = tensor.data();
  for (double& element : out) {
    T value;
    std::memcpy(&value, next, sizeof value);
    next += stride;
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
      element = static_cast<double>(static_cast<float>(value));
    } else {
      element = static_cast<double>(value);
    }
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
  switch (tensor.dtype()) {
    case DataType::kFloat:
      Widen<float>(tensor, 4, out);
      break;
    case DataType::kDouble:
      Widen<double>(tensor, 8, out);
      break;
    case DataType::kComplex64:
      Widen<float>(tensor, 8, out);
      break;
    case DataType::kComplex128:
      Widen<double>(tensor, 16, out);
      break;
    case DataType::kFloat16:
      Widen<Float16>(tensor, 2, out);
      break;
    case DataType::kBfloat16:
      Widen<Bfloat16>(tensor, 2, out);
      break;
    case DataType::kInt8:
      Widen<int8_t>(tensor, 1, out);
      break;
    case DataType::kInt16:
      Widen<int16_t>(tensor, 2, out);
      break;
    case DataType::kInt32:
      Widen<int32_t>(tensor, 4, out);
      break;
    case DataType::kInt64:
      Widen<int64_t>(tensor, 8, out);
      break;
    case DataType::kUint16:
      Widen<uint16_t>(tensor, 2, out);
      break;
    case DataType::kUint32:
      Widen<uint32_t>(tensor, 4, out);
      break;
    case DataType::kUint64:
      Widen<uint64_t>(tensor, 8, out);
      break;
    case DataType::kFloat8E5M2:
    case DataType::kFloat8E4M3Fn:
      WidenSmallFloats(tensor, tensor.dtype() == DataType::kFloat8E5M2, out);
      break;
    default:
      Widen<uint8_t>(tensor, 1, out);  // uint8 and bool
  }
  return out;
}

std::vector<float> AsFloats(const std::vector<double>& elements) {
  return std::vector<float>(elements.begin(), elements.end());
}

}  // namespace npumesh
