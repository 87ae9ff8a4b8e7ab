// What a corrupted element becomes, and which one it is.
#include <cmath>
#include <cstring>

#include "graph/inject/fault.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014), one step.
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

template <typename T>
double Load(const std::byte* data, int64_t i) {
  T value;
  std::memcpy(&value, data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  if constexpr (sizeof(T) == 2) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

template <typename T>
void Store(std::byte* data, int64_t i, double number) {
  T value;
  if constexpr (sizeof(T) == 2) {
    value = T(static_cast<float>(number));
  } else {
    value = static_cast<T>(number);
  }
  std::memcpy(data + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
}

template <typename T>
Status CorruptFloat(std::byte* data, int64_t elements, int64_t element) {
  double peak = 0;
  for (int64_t i = 0; i < elements; ++i) {
    const double magnitude = std::abs(Load<T>(data, i));
    if (std::isfinite(magnitude)) peak = std::max(peak, magnitude);
  }
  if (peak == 0) peak = 1;
  Store<T>(data, element, Load<T>(data, element) > 0 ? -peak : peak);
  return Status();
}

}  // namespace

Result<int64_t> ElementToHit(const Fault& fault, int64_t elements, uint64_t seed) {
  if (fault.element) {
    if (*fault.element < elements) return *fault.element;
    return Error(Code::kInvalidArgument, "element={}: output {} of \"{}\" has {} elements",
                 *fault.element, fault.output, fault.op, elements);
  }
  uint64_t hash = Mix(seed ^ Mix(static_cast<uint64_t>(fault.rank)));
  for (const char c : fault.op) hash = Mix(hash ^ static_cast<unsigned char>(c));
  return static_cast<int64_t>(hash % static_cast<uint64_t>(elements));
}

Status CorruptElement(const TensorType& type, void* data, int64_t element) {
  auto* const bytes = static_cast<std::byte*>(data);
  const int64_t elements = type.shape.elements();
  switch (type.dtype) {
    case DataType::kFloat:
      return CorruptFloat<float>(bytes, elements, element);
    case DataType::kDouble:
      return CorruptFloat<double>(bytes, elements, element);
    case DataType::kFloat16:
      return CorruptFloat<Float16>(bytes, elements, element);
    case DataType::kBfloat16:
      return CorruptFloat<Bfloat16>(bytes, elements, element);
    default:
      break;
  }
  const int bits = BitsOf(type.dtype);
  if (bits == 0 || bits % 8 != 0) {
    return Error(Code::kUnsupported, "an element of {} cannot be corrupted", type.ToString());
  }
  // The lowest bit: also what negates a boolean.
  bytes[static_cast<size_t>(element) * static_cast<size_t>(bits / 8)] ^= std::byte{1};
  return Status();
}

}  // namespace npumesh
