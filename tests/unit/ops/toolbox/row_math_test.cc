// The vectors of row_math.h beside the plain loops that define them, bit by bit.
#include "graph/ops/toolbox/values/row_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "graph/ops/toolbox/values/float_exp.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// Lengths around every vector and around the blocks of a sum.
constexpr int64_t kCounts[] = {0,  1,  3,  4,  7,  8,  9,   15,   16,   17,   31,
                               32, 33, 47, 64, 65, 99, 129, 1023, 1024, 1025, 3000};

// Rounding data, both signs, from 2^-20 to 2^6.
std::vector<float> Row(int64_t count, uint32_t seed) {
  std::vector<float> row(static_cast<size_t>(count));
  for (float& value : row) {
    seed = seed * 1664525 + 1013904223;
    const float mantissa = 1.0f + static_cast<float>(seed >> 9) * 0x1p-23f;
    value = std::ldexp(mantissa, static_cast<int>(seed % 27) - 20);
    if ((seed >> 7 & 1) != 0) value = -value;
  }
  return row;
}

void ExpectSameBits(const std::vector<float>& seen, const std::vector<float>& expected) {
  ASSERT_EQ(seen.size(), expected.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(seen[i]), std::bit_cast<uint32_t>(expected[i]))
        << "element " << i << " of " << seen.size() << ": " << seen[i] << ", " << expected[i];
  }
}

TEST(RowMath, SumsAreThoseOfTheLanes) {
  for (const int64_t count : kCounts) {
    const std::vector<float> x = Row(count, 7);
    EXPECT_EQ(SumOfRow(x.data(), count), BlockedSum(x.data(), count, [](float v) { return v; }));
    EXPECT_EQ(SumOfSquares(x.data(), count),
              BlockedSum(x.data(), count, [](float v) { return v * v; }));
  }
}

TEST(RowMath, TheLargestMayLieAnywhere) {
  EXPECT_EQ(LargestInRow(nullptr, 0), -std::numeric_limits<float>::infinity());
  for (const int64_t count : {1, 5, 16, 33, 70}) {
    for (int64_t at = 0; at < count; ++at) {
      std::vector<float> x(static_cast<size_t>(count), -3.0f);
      x[static_cast<size_t>(at)] = -2.0f;
      EXPECT_EQ(LargestInRow(x.data(), count), -2.0f) << at << " of " << count;
    }
  }
}

TEST(RowMath, ExponentialsAreThoseOfOneElement) {
  for (const int64_t count : kCounts) {
    std::vector<float> x = Row(count, 11);
    for (float& value : x) value = -std::fabs(value);
    if (count > 4) {
      x[0] = -std::numeric_limits<float>::infinity();
      x[1] = 0.0f;
      x[2] = -103.97f;  // the result is the smallest float
      x[3] = -88.0f;    // a subnormal one
      x[4] = -103.5f;   // the last that is not clipped
    }
    std::vector<float> expected;
    for (const float value : x) expected.push_back(ExpOfNonPositive(value - 0.5f));
    ExponentialsOfRow(x.data(), 0.5f, count, x.data());
    ExpectSameBits(x, expected);
  }
}

TEST(RowMath, ExponentialsKeepNan) {
  std::vector<float> x(20, -1.0f);
  x[3] = x[18] = std::numeric_limits<float>::quiet_NaN();
  ExponentialsOfRow(x.data(), 0.0f, 20, x.data());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(x[i]), i == 3 || i == 18) << i;
}

TEST(RowMath, ProductsAndSumsAreThoseOfElements) {
  for (const int64_t count : kCounts) {
    const std::vector<float> x = Row(count, 3);
    const std::vector<float> factors = Row(count, 5);
    std::vector<float> scaled = x, shifted = x, multiplied = x, added = x;
    std::vector<float> expected_scaled, expected_shifted, expected_multiplied, expected_added;
    ShiftRow(x.data(), -0.3f, count, shifted.data());
    ScaleRow(x.data(), 0.3f, count, scaled.data());
    MultiplyRow(x.data(), factors.data(), count, multiplied.data());
    AddRow(x.data(), factors.data(), count, added.data());
    for (size_t i = 0; i < x.size(); ++i) {
      expected_scaled.push_back(x[i] * 0.3f);
      expected_shifted.push_back(x[i] - 0.3f);
      expected_multiplied.push_back(x[i] * factors[i]);
      expected_added.push_back(x[i] + factors[i]);
    }
    ExpectSameBits(scaled, expected_scaled);
    ExpectSameBits(shifted, expected_shifted);
    ExpectSameBits(multiplied, expected_multiplied);
    ExpectSameBits(added, expected_added);
  }
}

}  // namespace
}  // namespace npumesh
