// Plain references for the tests of operators: everything in double, element by element, written
// without the code under test.
#ifndef NPUMESH_TESTS_UNIT_OP_REFERENCE_H_
#define NPUMESH_TESTS_UNIT_OP_REFERENCE_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/unit/op_types.h"
#include "tests/unit/op_values.h"

namespace npumesh {

inline constexpr DataType kReals[] = {kF32, kF16, kBf16, kF64};
inline constexpr DataType kIntegers[] = {DataType::kInt8,   DataType::kInt16, DataType::kInt32,
                                         DataType::kInt64,  DataType::kUint8, DataType::kUint16,
                                         DataType::kUint32, DataType::kUint64};

// The element of `from` that stands at element `linear` of `to` after broadcasting.
size_t SourceOf(const Shape& from, const Shape& to, size_t linear);

// Steps between two floats on the line of all floats; 0 for two NaN, and for -0 against +0.
int64_t UlpsBetween(float a, float b);

// The same bits, or both NaN.
template <typename T>
bool Same(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    return (std::isnan(ValueOf(a)) && std::isnan(ValueOf(b))) ||
           std::memcmp(&a, &b, sizeof(T)) == 0;
  }
}

template <typename T>
void ExpectSame(const Tensor& actual, const std::vector<T>& expected, const std::string& what) {
  ASSERT_EQ(static_cast<size_t>(actual.elements()), expected.size()) << what;
  const auto values = actual.as<T>();
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(Same(values[i], expected[i]))
        << what << ": element " << i << " is " << ValueOf(values[i]) << ", expected "
        << ValueOf(expected[i]);
  }
}

// Reproducible random bits (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Bits() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// Elements of any bit pattern: every exponent equally likely, infinities and NaN among them.
template <typename T>
std::vector<T> AnyBits(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    const uint64_t bits = random.Bits();
    std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  }
  return values;
}

// Zeros, infinities, NaN, subnormals, the largest, and numbers where formulas change branches.
std::vector<float> SpecialFloats();

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OP_REFERENCE_H_
