#include "graph/compare/measures/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "graph/compare/measures/comparison.h"

namespace npumesh {
namespace {

Tensor Zeros(const Shape& shape) {
  return Tensor::FromVector<float>({DataType::kFloat, shape},
                                   std::vector<float>(static_cast<size_t>(shape.elements()), 0.0f));
}

TEST(Difference, SaysWhereAndWhat) {
  const Shape shape{2, 3, 4};
  std::vector<float> values(24, 0.0f);
  values[7] = 1;                                         // [0,1,3]
  values[23] = std::numeric_limits<float>::quiet_NaN();  // [1,2,3]
  const Tensor mine = Tensor::FromVector<float>({DataType::kFloat, shape}, values);
  const TensorDifference difference = DifferenceOf(mine, Zeros(shape));
  EXPECT_EQ(difference.rows, 6);
  EXPECT_EQ(difference.columns, 4);
  EXPECT_EQ(difference.in_rows.first, 1);
  EXPECT_EQ(difference.in_rows.last, 5);
  EXPECT_EQ(difference.in_columns.first, 3);
  EXPECT_EQ(difference.in_columns.last, 3);
  ASSERT_EQ(difference.samples.size(), 2u);
  EXPECT_EQ(difference.samples[0].flat, 7);
  EXPECT_EQ(difference.samples[0].mine, 1);
  EXPECT_EQ(difference.samples[0].golden, 0);
  EXPECT_TRUE(std::isnan(difference.samples[1].mine));
  ASSERT_EQ(difference.map.size(), 24u);
  EXPECT_EQ(difference.map[7], 1);
  EXPECT_EQ(difference.map[23], 1);
}

// Against a count of each element by its own cell, on shapes that the map does not divide.
TEST(Difference, CountsEveryElementInItsCell) {
  std::mt19937 random(7);
  for (const Shape& shape : {Shape{1}, Shape{100}, Shape{33, 1}, Shape{50, 70}, Shape{3, 40, 65}}) {
    const auto count = static_cast<size_t>(shape.elements());
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(random() % 3);
    const Tensor mine = Tensor::FromVector<float>({DataType::kFloat, shape}, values);
    const TensorDifference difference = DifferenceOf(mine, Zeros(shape));
    const int64_t columns = shape[shape.rank() - 1];
    const int64_t rows = shape.elements() / columns;
    EXPECT_EQ(difference.map_rows, std::min<int64_t>(rows, 32));
    EXPECT_EQ(difference.map_columns, std::min<int64_t>(columns, 32));
    std::vector<int64_t> expected(difference.map.size());
    for (size_t i = 0; i < count; ++i) {
      if (values[i] == 0) continue;
      const int64_t row = static_cast<int64_t>(i) / columns;
      const int64_t column = static_cast<int64_t>(i) % columns;
      const int64_t cell = row * difference.map_rows / rows * difference.map_columns +
                           column * difference.map_columns / columns;
      ++expected[static_cast<size_t>(cell)];
    }
    EXPECT_EQ(difference.map, expected);
    const TensorDistance distance = DistanceOf(mine, Zeros(shape));
    EXPECT_EQ(std::accumulate(difference.map.begin(), difference.map.end(), int64_t{0}),
              distance.differing);
    EXPECT_LE(difference.samples.size(), kMostSamples);
  }
}

TEST(Difference, OfWhatIsAllowedOrCannotBeComparedIsEmpty) {
  const Shape shape{4};
  const Tensor mine = Tensor::FromVector<float>({DataType::kFloat, shape}, {0, 0.5, 0, 0});
  EXPECT_TRUE(DifferenceOf(mine, Zeros(shape), {.absolute = 1}).samples.empty());
  EXPECT_TRUE(DifferenceOf(mine, Zeros(shape), {.absolute = 1}).map.empty());
  EXPECT_TRUE(DifferenceOf(mine, Zeros({2, 2})).samples.empty());
  EXPECT_TRUE(DifferenceOf(Zeros({0, 4}), Zeros({0, 4})).map.empty());
  EXPECT_TRUE(DifferenceOf(Zeros({4, 0}), Zeros({4, 0})).map.empty());
}

TEST(Difference, IsKeptForTheFirstOperatorsOnly) {
  MemorySource mine("mine"), golden("golden");
  for (const char* name : {"a", "b", "c", "d"}) {
    const float wrong = std::string(name) == "a" ? 0 : 1;
    mine.Add(name, "Neg", Side::kOutput, 0,
             Tensor::FromVector<float>({DataType::kFloat, {1}}, {wrong}));
    golden.Add(name, "Neg", Side::kOutput, 0, Zeros({1}));
  }
  CompareOptions options;
  options.detailed = 2;
  const Comparison comparison = *CompareSources(mine, golden, nullptr, options);
  std::vector<size_t> samples;
  for (const OperatorRow& row : comparison.rows) {
    samples.push_back(row.tensors[0].difference.samples.size());
  }
  EXPECT_EQ(samples, (std::vector<size_t>{0, 1, 1, 0}));
}

}  // namespace
}  // namespace npumesh
