#include "launch/run/tensor_check.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "runtime/base/float16.h"
#include "tests/unit/launch/float_row.h"

namespace npumesh {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(CompareTensors, FloatRule) {
  struct Case {
    float value, golden;
    bool matches;
  };
  const std::vector<Case> cases = {
      {1, 1, true},        {1.000005f, 1, true}, {1.00002f, 1, false}, {5e-7f, 0, true},
      {2e-6f, 0, false},   {kNan, kNan, true},   {kNan, 1, false},     {1, kNan, false},
      {kInf, kInf, true},  {-kInf, kInf, false}, {1, kInf, false},     {kInf, 1, false},
      {-0.0f, 0.0f, true},
  };
  for (const Case& c : cases) {
    const Tolerance tolerance = DefaultTolerance(DataType::kFloat);
    EXPECT_EQ(CompareTensors(Floats({c.value}), Floats({c.golden}), tolerance).matches, c.matches)
        << c.value << " against " << c.golden;
  }
}

TEST(CompareTensors, FindsTheWorstElement) {
  const Difference difference = CompareTensors(Floats({1, 2.5f, 3, 5}), Floats({1, 2, 3, 4}), {});
  EXPECT_FALSE(difference.matches);
  EXPECT_EQ(difference.differing, 2);
  EXPECT_EQ(difference.max_abs, 1);
  EXPECT_EQ(difference.where, 3);
  EXPECT_EQ(difference.value, "5");
  EXPECT_EQ(difference.golden, "4");
}

TEST(CompareTensors, AnElementOutsideStandsAboveALargerOneInside) {
  const Tolerance tolerance{0.5, 0.0};
  const Difference difference = CompareTensors(Floats({140, 2}), Floats({100, 1}), tolerance);
  EXPECT_EQ(difference.where, 1);
  EXPECT_EQ(difference.max_abs, 40);
}

TEST(CompareTensors, SaysWhatTheWorstElementNeeds) {
  const Tensor golden = Floats({1, 10, 0});
  const Tensor value = Floats({1.5f, 13, 0.25f});
  const Difference difference = CompareTensors(value, golden, {0.25, 0.25});
  EXPECT_FALSE(difference.matches);
  EXPECT_EQ(difference.needs_atol, 0.5);  // 3 - 0.25 * 10
  EXPECT_TRUE(CompareTensors(value, golden, {0.25, difference.needs_atol}).matches);
  EXPECT_EQ(CompareTensors(golden, golden, {}).needs_atol, 0);
  EXPECT_EQ(CompareTensors(Floats({kNan}), Floats({1}), {1, 1}).needs_atol, kInf);
  EXPECT_EQ(CompareTensors(Floats({1}), Floats({kInf}), {1, 1}).needs_atol, kInf);
}

TEST(CompareTensors, IntegersMustBeEqualWhateverTheTolerance) {
  const TensorType type{DataType::kInt64, {2}};
  const int64_t big = int64_t{1} << 62;
  const Tensor value = Tensor::FromVector<int64_t>(type, {big + 1, 0});
  const Tensor golden = Tensor::FromVector<int64_t>(type, {big, 0});
  const Difference difference = CompareTensors(value, golden, {1.0, 1.0});
  EXPECT_FALSE(difference.matches);
  EXPECT_EQ(difference.max_abs, 1);
  EXPECT_TRUE(CompareTensors(golden, golden, {}).matches);
}

TEST(CompareTensors, Bfloat16GoldensComeAsBitPatterns) {
  const Tensor value = Tensor::FromVector<Bfloat16>({DataType::kBfloat16, {1}}, {Bfloat16(1.0f)});
  const Tensor golden = Tensor::FromVector<uint16_t>({DataType::kUint16, {1}}, {0x3f80});
  EXPECT_TRUE(CompareTensors(value, golden, {}).matches);
}

TEST(CompareTensors, OtherTypeOrShapeDiffers) {
  const Tensor ints = Tensor::FromVector<int32_t>({DataType::kInt32, {1}}, {1});
  EXPECT_EQ(CompareTensors(Floats({1}), ints, {}).reason, "the golden is int32[1]");
  EXPECT_EQ(CompareTensors(Floats({1}), Floats({1, 1}), {}).reason, "the golden is float32[2]");
}

TEST(PositionOf, CountsInCOrder) {
  EXPECT_EQ(PositionOf(0, Shape()), "[]");
  EXPECT_EQ(PositionOf(5, Shape{2, 4}), "[1,1]");
  EXPECT_EQ(PositionOf(23, Shape{2, 3, 4}), "[1,2,3]");
}

}  // namespace
}  // namespace npumesh
