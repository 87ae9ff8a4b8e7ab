#include "launch/run/random_tensor.h"

#include <gmock/gmock.h>

#include <set>

#include "runtime/base/float16.h"

namespace npumesh {
namespace {

std::vector<float> DrawnFloats(const RandomKey& key) {
  const Result<Tensor> tensor = RandomTensor({DataType::kFloat, {64}}, key);
  return {tensor->as<float>().begin(), tensor->as<float>().end()};
}

TEST(RandomTensor, DependsOnTheWholeKeyAndNothingElse) {
  const RandomKey key{1, 2, 3, 4};
  EXPECT_EQ(DrawnFloats(key), DrawnFloats(key));
  for (const RandomKey& other : {RandomKey{9, 2, 3, 4}, {1, 9, 3, 4}, {1, 2, 9, 4}, {1, 2, 3, 9}}) {
    EXPECT_NE(DrawnFloats(key), DrawnFloats(other));
  }
}

TEST(RandomTensor, FloatingTypesHoldTheSameExactValues) {
  const RandomKey key{7, 0, 1, 0};
  const std::vector<float> expected = DrawnFloats(key);
  const Result<Tensor> half = RandomTensor({DataType::kFloat16, {64}}, key);
  const Result<Tensor> brain = RandomTensor({DataType::kBfloat16, {64}}, key);
  const Result<Tensor> wide = RandomTensor({DataType::kDouble, {64}}, key);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_GE(expected[i], -1);
    EXPECT_LT(expected[i], 1);
    EXPECT_EQ(static_cast<float>(half->as<Float16>()[i]), expected[i]);
    EXPECT_EQ(static_cast<float>(brain->as<Bfloat16>()[i]), expected[i]);
    EXPECT_EQ(wide->as<double>()[i], expected[i]);
  }
}

TEST(RandomTensor, IntegersAreSmallAndNotNegative) {
  const Result<Tensor> tensor = RandomTensor({DataType::kInt64, {1000}}, {});
  const std::set<int64_t> seen(tensor->as<int64_t>().begin(), tensor->as<int64_t>().end());
  EXPECT_EQ(seen, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(RandomTensor, BoolIsZeroOrOne) {
  const Result<Tensor> tensor = RandomTensor({DataType::kBool, {100}}, {});
  const std::set<uint8_t> seen(tensor->as<uint8_t>().begin(), tensor->as<uint8_t>().end());
  EXPECT_EQ(seen, (std::set<uint8_t>{0, 1}));
}

TEST(RandomTensor, OtherTypesAreRefused) {
  const Result<Tensor> tensor = RandomTensor({DataType::kComplex64, {2}}, {});
  EXPECT_EQ(tensor.status().code(), Code::kUnsupported);
  EXPECT_THAT(std::string(tensor.status().message()), testing::HasSubstr("complex64"));
}

}  // namespace
}  // namespace npumesh
