#include "tests/fuzz/engine/plain_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace npumesh::fuzz {
namespace {

struct FloatForm {
  int digits;          // of the mantissa, the hidden one included
  int least_exponent;  // of a normal number
  Number most;
};

FloatForm FormOf(DataType dtype) {
  if (dtype == DataType::kFloat16) return {11, -14, 65504.0L};
  if (dtype == DataType::kBfloat16) return {8, -126, std::ldexp(255.0L, 120)};
  return {24, -126, std::numeric_limits<float>::max()};
}

// Ties to even; what rounds past the largest number is infinite.
Number RoundFloat(const FloatForm& form, Number x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), form.least_exponent);
  const int unit = exponent - form.digits + 1;
  const Number rounded = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
  if (std::fabs(rounded) <= form.most) return rounded;
  return std::copysign(std::numeric_limits<Number>::infinity(), x);
}

template <typename Int>
Number Wrap(Number x) {
  if (!(std::fabs(x) < 0x1p63L)) return 0;
  return static_cast<Number>(static_cast<Int>(static_cast<int64_t>(x)));
}

// The bits of a 16-bit float.
uint16_t BitsOf16(DataType dtype, Number x) {
  const FloatForm form = FormOf(dtype);
  const int mantissa = form.digits - 1;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const auto top = static_cast<uint16_t>(0x7fff >> mantissa << mantissa);
  if (std::isnan(x)) return static_cast<uint16_t>(sign | top | (1 << (mantissa - 1)));
  if (std::isinf(x)) return static_cast<uint16_t>(sign | top);
  const Number size = std::fabs(x);
  const int exponent =
      size == 0 ? form.least_exponent : std::max(std::ilogb(size), form.least_exponent);
  // A subnormal has the same unit as the least normal numbers, and no hidden digit.
  const auto digits = static_cast<int64_t>(std::ldexp(size, mantissa - exponent));
  return static_cast<uint16_t>(
      sign | (digits + (static_cast<int64_t>(exponent - form.least_exponent) << mantissa)));
}

Number From16(DataType dtype, uint16_t bits) {
  const FloatForm form = FormOf(dtype);
  const int mantissa = form.digits - 1;
  const int field = (bits & 0x7fff) >> mantissa;
  const int last = 0x7fff >> mantissa;
  const int64_t digits = bits & ((1 << mantissa) - 1);
  Number size = 0;
  if (field == last) {
    size = digits == 0 ? std::numeric_limits<Number>::infinity()
                       : std::numeric_limits<Number>::quiet_NaN();
  } else {
    const int64_t hidden = field == 0 ? 0 : int64_t{1} << mantissa;
    size = std::ldexp(static_cast<Number>(digits + hidden),
                      std::max(field, 1) - 1 + form.least_exponent - mantissa);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

template <typename T>
void Read(const Tensor& tensor, PlainTensor& plain) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    T value;
    std::memcpy(&value, tensor.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    plain.v.push_back(static_cast<Number>(value));
  }
}

template <typename T>
void Write(const PlainTensor& plain, Tensor& tensor) {
  for (int64_t i = 0; i < plain.count(); ++i) {
    const T value = static_cast<T>(plain.at(i));
    std::memcpy(tensor.mutable_data() + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

}  // namespace

bool IsFloat(DataType dtype) {
  return dtype == DataType::kFloat || dtype == DataType::kFloat16 || dtype == DataType::kBfloat16;
}

bool IsWholeType(DataType dtype) {
  return dtype == DataType::kInt32 || dtype == DataType::kInt64 || dtype == DataType::kInt8 ||
         dtype == DataType::kUint8;
}

int64_t CountOf(const Extents& dims) {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return count;
}

bool FitsInMemory(const Extents& dims) {
  constexpr Number kMost = 1 << 20;
  Number elements = 1;
  for (const int64_t dim : dims) elements *= static_cast<Number>(dim);
  return std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim >= 0; }) &&
         elements <= kMost;
}

Extents StridesOf(const Extents& dims) {
  Extents strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

PlainTensor Zeros(DataType dtype, Extents dims) {
  PlainTensor made{dtype, std::move(dims), {}};
  made.v.resize(static_cast<size_t>(CountOf(made.dims)));
  return made;
}

void ForEachPosition(const Extents& dims, const std::function<void(const Extents& at)>& take) {
  if (CountOf(dims) == 0) return;
  Extents at(dims.size(), 0);
  while (true) {
    take(at);
    size_t d = dims.size();
    while (d > 0 && ++at[d - 1] == dims[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

int64_t OffsetOf(const Extents& at, const Extents& strides) {
  int64_t offset = 0;
  for (size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
  return offset;
}

std::optional<Extents> Joined(const Extents& a, const Extents& b) {
  Extents joined(std::max(a.size(), b.size()), 1);
  for (size_t i = 1; i <= joined.size(); ++i) {
    const int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    joined[joined.size() - i] = x == 1 ? y : x;
  }
  return joined;
}

std::vector<int64_t> BroadcastSources(const Extents& from, const Extents& dims) {
  const Extents strides = StridesOf(from);
  const size_t missing = dims.size() - from.size();
  std::vector<int64_t> sources;
  ForEachPosition(dims, [&](const Extents& at) {
    int64_t source = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      if (from[d] != 1) source += at[d + missing] * strides[d];
    }
    sources.push_back(source);
  });
  return sources;
}

std::optional<int> AxisIn(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Number RoundTo(DataType dtype, Number x) {
  switch (dtype) {
    case DataType::kFloat:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return RoundFloat(FormOf(dtype), x);
    case DataType::kInt32:
      return Wrap<int32_t>(x);
    case DataType::kInt8:
      return Wrap<int8_t>(x);
    case DataType::kUint8:
      return Wrap<uint8_t>(x);
    case DataType::kBool:
      return x != 0 ? 1 : 0;
    default:
      return Wrap<int64_t>(x);
  }
}

void RoundAll(PlainTensor& tensor) {
  for (Number& x : tensor.v) x = RoundTo(tensor.dtype, x);
}

Number EpsilonOf(DataType dtype) {
  return IsFloat(dtype) ? std::ldexp(1.0L, 1 - FormOf(dtype).digits) : 0;
}

PlainTensor Reinterpreted(const PlainTensor& plain, DataType dtype) {
  if (dtype == plain.dtype) return plain;
  PlainTensor made = FromTensor(ToTensor(plain).WithType({dtype, Shape(plain.dims)}));
  // The sign of zero and which NaN it is are not said by the operators before it.
  const bool sure = std::all_of(plain.v.begin(), plain.v.end(),
                                [](Number x) { return x != 0 && !std::isnan(x); });
  made.trust = sure && plain.trust == Trust::kExact ? Trust::kExact : Trust::kUnsure;
  return made;
}

PlainTensor FromTensor(const Tensor& tensor) {
  PlainTensor plain{tensor.dtype(), tensor.shape().dims(), {}};
  switch (tensor.dtype()) {
    case DataType::kFloat:
      Read<float>(tensor, plain);
      break;
    case DataType::kFloat16:
    case DataType::kBfloat16:
      Read<uint16_t>(tensor, plain);
      for (Number& x : plain.v) x = From16(tensor.dtype(), static_cast<uint16_t>(x));
      break;
    case DataType::kInt32:
      Read<int32_t>(tensor, plain);
      break;
    case DataType::kInt8:
      Read<int8_t>(tensor, plain);
      break;
    case DataType::kInt64:
      Read<int64_t>(tensor, plain);
      break;
    default:
      Read<uint8_t>(tensor, plain);
  }
  return plain;
}

Tensor ToTensor(const PlainTensor& plain) {
  Tensor tensor = Tensor::Allocate({plain.dtype, Shape(plain.dims)});
  PlainTensor bits = plain;
  switch (plain.dtype) {
    case DataType::kFloat:
      Write<float>(plain, tensor);
      break;
    case DataType::kFloat16:
    case DataType::kBfloat16:
      for (Number& x : bits.v) x = BitsOf16(plain.dtype, x);
      Write<uint16_t>(bits, tensor);
      break;
    case DataType::kInt32:
      Write<int32_t>(plain, tensor);
      break;
    case DataType::kInt8:
      Write<int8_t>(plain, tensor);
      break;
    case DataType::kInt64:
      Write<int64_t>(plain, tensor);
      break;
    default:
      Write<uint8_t>(plain, tensor);
  }
  return tensor;
}

}  // namespace npumesh::fuzz
