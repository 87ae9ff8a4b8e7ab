#include "graph/dump/statistics/statistics_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace npumesh {
namespace {

class StatisticsCacheTest : public testing::Test {
 protected:
  // `count` floats from element `at` on.
  DumpOperand Floats(size_t at, int64_t count, bool constant = false) const {
    DumpOperand operand;
    operand.tensor.type = {DataType::kFloat, Shape({count})};
    operand.tensor.size = operand.tensor.type.bytes();
    operand.data = values_.data() + at;
    operand.constant = constant;
    return operand;
  }
  double MaxOf(const DumpOperand& operand) { return std::get<double>(cache_.Of(operand)->max); }

  std::vector<float> values_ = std::vector<float>(16, 1.0f);
  StatisticsCache cache_;
};

TEST_F(StatisticsCacheTest, LooksOnceUntilSomebodyWrites) {
  EXPECT_EQ(MaxOf(Floats(4, 4)), 1);
  values_[5] = 2;
  EXPECT_EQ(MaxOf(Floats(4, 4)), 1);  // the cache was not told
  for (const size_t at :
       {1, 4, 5, 7}) {  // reaches in from the left, is it, lies inside, reaches out
    cache_.Forget(values_.data() + at, 4 * sizeof(float));
    values_[5] += 1;
    EXPECT_EQ(MaxOf(Floats(4, 4)), values_[5]) << at;
  }
  values_[5] = 0;
  cache_.Forget(values_.data(), 4 * sizeof(float));      // ends where it begins
  cache_.Forget(values_.data() + 8, 4 * sizeof(float));  // begins where it ends
  EXPECT_EQ(MaxOf(Floats(4, 4)), 6);
}

TEST_F(StatisticsCacheTest, AnotherTypeOrSizeIsAnotherTensor) {
  values_[5] = 2;
  EXPECT_EQ(MaxOf(Floats(4, 4)), 2);
  EXPECT_EQ(MaxOf(Floats(4, 1)), 1);
  DumpOperand integers = Floats(4, 4);
  integers.tensor.type.dtype = DataType::kInt32;
  EXPECT_EQ(std::get<int64_t>(cache_.Of(integers)->max), 0x40000000);
}

TEST_F(StatisticsCacheTest, ConstantsStayFromRunToRun) {
  EXPECT_EQ(MaxOf(Floats(0, 4, true)), 1);
  EXPECT_EQ(MaxOf(Floats(8, 4)), 1);
  values_.assign(16, 7.0f);
  cache_.ForgetVariables();
  EXPECT_EQ(MaxOf(Floats(0, 4, true)), 1);
  EXPECT_EQ(MaxOf(Floats(8, 4)), 7);
  cache_.ForgetAll();
  EXPECT_EQ(MaxOf(Floats(0, 4, true)), 7);
}

TEST_F(StatisticsCacheTest, WhatHasNone) {
  EXPECT_FALSE(cache_.Of(Floats(0, 0)).has_value());
  DumpOperand complex = Floats(0, 2);
  complex.tensor.type.dtype = DataType::kComplex64;
  EXPECT_FALSE(cache_.Of(complex).has_value());
}

}  // namespace
}  // namespace npumesh
