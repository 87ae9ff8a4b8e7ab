#include "runtime/base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace npumesh {
namespace {

// A slow reference that shares no idea with the product: the format's values are listed as doubles
// by their definition and the nearest one is searched.
struct Format {
  int exponent_bits;
  int mantissa_bits;

  uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }

  // Value of a finite, non-negative pattern. Infinity's pattern yields 2^(emax+1), the value from
  // whose half-way point rounding overflows.
  double Value(uint32_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> mantissa_bits);
    const double fraction =
        std::ldexp(static_cast<double>(bits & ((1u << mantissa_bits) - 1)), -mantissa_bits);
    if (exponent == 0) return std::ldexp(fraction, 1 - bias);
    return std::ldexp(1.0 + fraction, exponent - bias);
  }

  // Patterns of non-negative values ascend with their value, so the nearest is found by bisection.
  uint16_t Round(float value) const {
    const uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
    const double magnitude = std::fabs(static_cast<double>(value));
    if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity());
    uint32_t low = 0;
    uint32_t high = infinity();
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      (Value(middle) <= magnitude ? low : high) = middle;
    }
    if (magnitude >= Value(high)) return static_cast<uint16_t>(sign | high);
    const double below = magnitude - Value(low);
    const double above = Value(high) - magnitude;
    const bool up = above < below || (above == below && (high & 1u) == 0);
    return static_cast<uint16_t>(sign | (up ? high : low));
  }
};

constexpr Format kHalf{5, 10};
constexpr Format kBrain{8, 7};

template <typename T>
void ExpectAllPatternsRoundTrip(const Format& format) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const T value = T::FromBits(static_cast<uint16_t>(bits));
    const float wide = static_cast<float>(value);
    const uint32_t magnitude = bits & 0x7fffu;
    if (magnitude > format.infinity()) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_GT(T(wide).bits & 0x7fffu, format.infinity()) << bits;
      ASSERT_EQ(T(wide).bits & 0x8000u, bits & 0x8000u) << bits;
      continue;
    }
    ASSERT_EQ(std::signbit(wide), (bits & 0x8000u) != 0) << bits;
    if (magnitude == format.infinity()) {
      ASSERT_TRUE(std::isinf(wide)) << bits;
    } else {
      ASSERT_EQ(std::fabs(static_cast<double>(wide)), format.Value(magnitude)) << bits;
    }
    ASSERT_EQ(T(wide).bits, bits);
  }
}

TEST(Float16, AllPatternsRoundTrip) {
  ExpectAllPatternsRoundTrip<Float16>(kHalf);
}
TEST(Bfloat16, AllPatternsRoundTrip) {
  ExpectAllPatternsRoundTrip<Bfloat16>(kBrain);
}

// Between each two neighbours: the half-way point and the floats beside it.
template <typename T>
void ExpectTiesGoToEven(const Format& format) {
  for (uint32_t low = 0; low < format.infinity(); ++low) {
    const double middle = (format.Value(low) + format.Value(low + 1)) / 2;
    const auto tie = static_cast<float>(middle);
    const float candidates[] = {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, INFINITY)};
    for (const float value : candidates) {
      ASSERT_EQ(T(value).bits, format.Round(value)) << value;
      ASSERT_EQ(T(-value).bits, format.Round(-value)) << value;
    }
  }
}

TEST(Float16, TiesGoToEven) {
  ExpectTiesGoToEven<Float16>(kHalf);
}
TEST(Bfloat16, TiesGoToEven) {
  ExpectTiesGoToEven<Bfloat16>(kBrain);
}

TEST(Float16, RandomPatternsAgreeWithTheReference) {
  std::mt19937 random(20260101);
  for (int i = 0; i < 200'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Float16(value))));
      EXPECT_TRUE(std::isnan(static_cast<float>(Bfloat16(value))));
      continue;
    }
    ASSERT_EQ(Float16(value).bits, kHalf.Round(value)) << value;
    ASSERT_EQ(Bfloat16(value).bits, kBrain.Round(value)) << value;
  }
}

TEST(Float16, Landmarks) {
  struct {
    float value;
    uint16_t bits;
  } const cases[] = {
      {0.0f, 0x0000},     {-0.0f, 0x8000},      {1.0f, 0x3c00},      {65504.0f, 0x7bff},
      {65519.0f, 0x7bff}, {65520.0f, 0x7c00},   {-65520.0f, 0xfc00}, {0x1p-24f, 0x0001},
      {0x1p-25f, 0x0000}, {0x1.8p-25f, 0x0001}, {0x1p-14f, 0x0400},  {1e-45f, 0x0000},
      {3.4e38f, 0x7c00},
  };
  for (const auto& [value, bits] : cases) EXPECT_EQ(Float16(value).bits, bits) << value;
}

TEST(Bfloat16, Landmarks) {
  EXPECT_EQ(Bfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(Bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(Bfloat16(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
  EXPECT_EQ(Bfloat16(257.0f).bits, Bfloat16(256.0f).bits);  // exact integers end at 256
}

// A NaN whose payload lies only in bits that are cut off must not become infinity.
TEST(Float16, NanWithALowPayloadStaysNan) {
  for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu}) {
    const auto nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(static_cast<float>(Float16(nan)))) << bits;
    EXPECT_TRUE(std::isnan(static_cast<float>(Bfloat16(nan)))) << bits;
  }
}

}  // namespace
}  // namespace npumesh
