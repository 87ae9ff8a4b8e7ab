#include "graph/compare/measures/distance.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "graph/compare/measures/elements.h"
#include "runtime/base/float16.h"
#include "tests/unit/compare/float_tensor.h"

namespace npumesh {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor Bytes(DataType dtype, std::vector<uint8_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::FromVector(TensorType{dtype, {count}}, values);
}

TEST(Distance, EqualTensorsAreTheSame) {
  const TensorDistance same =
      DistanceOf(Floats({1, kNan, kInf, 0}), Floats({1, kNan, kInf, -0.0f}));
  EXPECT_TRUE(same.same());
  EXPECT_EQ(same.max_abs, 0);
  EXPECT_EQ(same.max_ulp, 0u);
  EXPECT_EQ(same.nan_x, 1);
  EXPECT_EQ(same.nan_y, 1);
  EXPECT_EQ(same.inf_x, 1);
}

TEST(Distance, FindsFirstAndLargest) {
  const TensorDistance d = DistanceOf(Floats({1, 2.5f, 3, 5}), Floats({1, 2, 3, 4}));
  EXPECT_FALSE(d.same());
  EXPECT_EQ(d.differing, 2);
  EXPECT_EQ(d.first, 1);
  EXPECT_EQ(d.max_abs, 1);
  EXPECT_EQ(d.where, 3);
}

TEST(Distance, NanAndInfinityDifferFromNumbers) {
  EXPECT_EQ(DistanceOf(Floats({kNan}), Floats({1})).differing, 1);
  EXPECT_EQ(DistanceOf(Floats({1}), Floats({kInf}), {.relative = 1}).differing, 1);
  EXPECT_EQ(DistanceOf(Floats({-kInf}), Floats({kInf}), {.of_peak = 1}).differing, 1);
}

TEST(Distance, UlpInTheCoarserType) {
  const float next = std::nextafter(1.0f, 2.0f);
  EXPECT_EQ(DistanceOf(Floats({next}), Floats({1})).max_ulp, 1u);
  EXPECT_EQ(DistanceOf(Floats({std::nextafter(0.0f, 1.0f)}), Floats({std::nextafter(0.0f, -1.0f)}))
                .max_ulp,
            2u);
  const Tensor half =
      Tensor::FromVector<Float16>({DataType::kFloat16, {1}}, {Float16::FromBits(0x3c02)});
  EXPECT_EQ(DistanceOf(half, Floats({1})).max_ulp, 2u);
  const Tensor brain = Tensor::FromVector<Bfloat16>({DataType::kBfloat16, {1}}, {Bfloat16(1.0f)});
  EXPECT_TRUE(DistanceOf(brain, Floats({1})).same());
}

TEST(Distance, Allowances) {
  struct Case {
    Allowance allowance;
    float x, y;
    bool same;
  };
  const std::vector<Case> cases = {
      {{.absolute = 0.5}, 1.5f, 1, true}, {{.absolute = 0.5}, 1.75f, 1, false},
      {{.relative = 0.5}, 3, 2, true},    {{.relative = 0.5}, 3.5f, 2, false},
      {{.of_peak = 0.25}, 3, 2, true},    {{.of_peak = 0.125}, 3, 2, false},
  };
  for (const Case& c : cases) {
    // The second element makes the peak 4.
    EXPECT_EQ(DistanceOf(Floats({c.x, 4}), Floats({c.y, 4}), c.allowance).same(), c.same) << c.x;
  }
}

TEST(Distance, IntegersMustBeEqualWhateverIsAllowed) {
  const TensorType type{DataType::kInt64, {2}};
  const int64_t big = int64_t{1} << 62;
  const Tensor x = Tensor::FromVector<int64_t>(type, {big + 1, 0});
  const Tensor y = Tensor::FromVector<int64_t>(type, {big, 0});
  EXPECT_EQ(DistanceOf(x, y, {.absolute = 10}).differing, 1);
  EXPECT_TRUE(DistanceOf(y, y).same());
}

TEST(Distance, OtherTypeOrShapeCannotBeCompared) {
  const Tensor ints = Tensor::FromVector<int32_t>({DataType::kInt32, {1}}, {1});
  EXPECT_EQ(DistanceOf(Floats({1}), ints).reason, "float32[1] against int32[1]");
  EXPECT_EQ(DistanceOf(Floats({1, 1}), Floats({1})).reason, "float32[2] against float32[1]");
  EXPECT_FALSE(DistanceOf(Floats({1}), ints).same());
}

TEST(Distance, AScalarIsWhatNumpyMadeOfIt) {
  const Tensor scalar = Tensor::FromVector<float>({DataType::kFloat, {}}, {2});
  EXPECT_TRUE(DistanceOf(scalar, Floats({2})).same());
}

TEST(Distance, TypesWithoutNumbersByTheirBits) {
  const TensorType type{DataType::kInt4, {4}};
  const Tensor x = Tensor::FromString(type, std::string("\x12\x34", 2));
  const Tensor y = Tensor::FromString(type, std::string("\x12\x35", 2));
  EXPECT_TRUE(DistanceOf(x, x).same());
  EXPECT_FALSE(DistanceOf(x, y).same());
}

TEST(Elements, EightBitFloats) {
  // Values of the OCP 8-bit floating point specification.
  EXPECT_THAT(*ElementsOf(Bytes(DataType::kFloat8E4M3Fn, {0x38, 0xb8, 0x7e, 0x01, 0x00})),
              testing::ElementsAre(1, -1, 448, 0x1p-9, 0));
  EXPECT_THAT(*ElementsOf(Bytes(DataType::kFloat8E5M2, {0x3c, 0x7b, 0x01, 0x7c, 0xfc})),
              testing::ElementsAre(1, 57344, 0x1p-16, INFINITY, -INFINITY));
  EXPECT_TRUE(std::isnan((*ElementsOf(Bytes(DataType::kFloat8E4M3Fn, {0x7f})))[0]));
  EXPECT_TRUE(std::isnan((*ElementsOf(Bytes(DataType::kFloat8E5M2, {0x7d})))[0]));
}

TEST(Elements, IntegersAndBooleans) {
  EXPECT_THAT(*ElementsOf(Bytes(DataType::kUint8, {0, 255})), testing::ElementsAre(0, 255));
  EXPECT_THAT(*ElementsOf(Bytes(DataType::kInt8, {0x80, 0x7f})), testing::ElementsAre(-128, 127));
  EXPECT_THAT(*ElementsOf(Bytes(DataType::kBool, {1, 0})), testing::ElementsAre(1, 0));
  const Tensor wide = Tensor::FromVector<uint64_t>({DataType::kUint64, {1}}, {uint64_t{1} << 52});
  EXPECT_THAT(*ElementsOf(wide), testing::ElementsAre(0x1p52));
}

TEST(Elements, OthersAreRefusedByName) {
  const Tensor packed = Tensor::FromString({DataType::kInt4, {2}}, std::string(1, '\0'));
  EXPECT_EQ(ElementsOf(packed).status().code(), Code::kUnsupported);
  EXPECT_THAT(ElementsOf(packed).status().message(), testing::HasSubstr("int4[2]"));
}

}  // namespace
}  // namespace npumesh
