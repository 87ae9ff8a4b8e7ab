#include "graph/ops/toolbox/values/nonzero.h"

#include <cstddef>

namespace npumesh {
namespace {

bool IsComplex(DataType dtype) {
  return dtype == DataType::kComplex64 || dtype == DataType::kComplex128;
}

// Any bit but the highest, which is the sign.
bool IsNonZeroFloat(const unsigned char* bytes, size_t count) {
  for (size_t i = 0; i + 1 < count; ++i) {
    if (bytes[i] != 0) return true;
  }
  return (bytes[count - 1] & 0x7F) != 0;
}

}  // namespace

bool HasZero(DataType dtype) {
  return IsInteger(dtype) || IsFloating(dtype) || IsComplex(dtype) || dtype == DataType::kBool;
}

bool IsNonZero(DataType dtype, const void* element) {
  const auto* bytes = static_cast<const unsigned char*>(element);
  const auto count = static_cast<size_t>(BitsOf(dtype)) / 8;
  if (IsComplex(dtype)) {
    return IsNonZeroFloat(bytes, count / 2) || IsNonZeroFloat(bytes + count / 2, count / 2);
  }
  if (IsFloating(dtype)) return IsNonZeroFloat(bytes, count);
  for (size_t i = 0; i < count; ++i) {
    if (bytes[i] != 0) return true;
  }
  return false;
}

}  // namespace npumesh
