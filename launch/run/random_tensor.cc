#include "launch/run/random_tensor.h"

#include "runtime/base/float16.h"

namespace npumesh {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t StreamOf(const RandomKey& key) {
  return Mix(Mix(Mix(Mix(key.seed) ^ key.step) ^ key.input) ^ key.rank);
}

float Fraction(uint64_t random) {
  return static_cast<float>(static_cast<int>(random >> 56) - 128) / 128.0f;
}

template <typename T, typename Convert>
Tensor Fill(const TensorType& type, const RandomKey& key, Convert convert) {
  Tensor tensor = Tensor::Allocate(type);
  T* out = reinterpret_cast<T*>(tensor.mutable_data());
  const uint64_t stream = StreamOf(key);
  const auto count = static_cast<uint64_t>(type.shape.elements());
  for (uint64_t i = 0; i < count; ++i) out[i] = convert(Mix(stream + i));
  return tensor;
}

template <typename T>
Tensor FillFloats(const TensorType& type, const RandomKey& key) {
  return Fill<T>(type, key, [](uint64_t random) { return T(Fraction(random)); });
}

// The upper bits of random * count, so that a power of two takes the top bits of `random`.
template <typename T>
Tensor FillIntegers(const TensorType& type, const RandomKey& key, IntRange range) {
  const uint64_t count = static_cast<uint64_t>(range.high) - static_cast<uint64_t>(range.low) + 1;
  return Fill<T>(type, key, [range, count](uint64_t random) {
    __extension__ using Wide = unsigned __int128;
    const auto offset = count == 0 ? random : static_cast<uint64_t>((Wide{random} * count) >> 64);
    return static_cast<T>(static_cast<uint64_t>(range.low) + offset);
  });
}

}  // namespace

Result<Tensor> RandomTensor(const TensorType& type, const RandomKey& key, IntRange range) {
  switch (type.dtype) {
    case DataType::kFloat:
      return FillFloats<float>(type, key);
    case DataType::kDouble:
      return FillFloats<double>(type, key);
    case DataType::kFloat16:
      return FillFloats<Float16>(type, key);
    case DataType::kBfloat16:
      return FillFloats<Bfloat16>(type, key);
    case DataType::kInt8:
    case DataType::kUint8:
      return FillIntegers<uint8_t>(type, key, range);
    case DataType::kInt16:
    case DataType::kUint16:
      return FillIntegers<uint16_t>(type, key, range);
    case DataType::kInt32:
    case DataType::kUint32:
      return FillIntegers<uint32_t>(type, key, range);
    case DataType::kInt64:
    case DataType::kUint64:
      return FillIntegers<uint64_t>(type, key, range);
    case DataType::kBool:
      return Fill<uint8_t>(type, key, [](uint64_t random) { return uint8_t(random >> 63); });
    default:
      return Error(Code::kUnsupported, "no random values of dtype {}; give them with --inputs",
                   Name(type.dtype));
  }
}

}  // namespace npumesh
