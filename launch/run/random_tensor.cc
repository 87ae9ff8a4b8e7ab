#include "launch/run/random_tensor.h"

#include "runtime/base/visit_stored.h"

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
  if (type.dtype == DataType::kBool) {
    return Fill<uint8_t>(type, key, [](uint64_t random) { return uint8_t(random >> 63); });
  }
  return VisitStored(
      type.dtype,
      [&]<typename T>() -> Result<Tensor> {
        if constexpr (std::integral<T>) {
          return FillIntegers<T>(type, key, range);
        } else {
          return Fill<T>(type, key, [](uint64_t random) { return T(Fraction(random)); });
        }
      },
      [&]() -> Result<Tensor> {
        return Error(Code::kUnsupported, "no random values of dtype {}; give them with --inputs",
                     Name(type.dtype));
      });
}

}  // namespace npumesh
