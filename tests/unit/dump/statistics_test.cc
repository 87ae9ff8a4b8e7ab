#include "graph/dump/statistics/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "graph/dump/statistics/statistics_csv.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The loop of the AI CPU, element by element.
struct Naive {
  double max, min, mean = 0;
  uint64_t nans = 0, negative = 0, positive = 0;

  template <typename T>
  explicit Naive(const std::vector<T>& values) : max(values[0]), min(values[0]) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto x = static_cast<double>(values[i]);
      if (x > max) max = x;
      if (x < min) min = x;
      mean += (x - mean) / static_cast<double>(i + 1);
      if (std::isnan(x)) ++nans;
      if (std::isinf(x)) ++(x < 0 ? negative : positive);
    }
    if (negative > 0 && positive == 0) mean = -kInf;
    if (positive > 0 && negative == 0) mean = kInf;
  }
};

double AsDouble(const StatisticNumber& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

bool SameNumber(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

template <typename T>
void ExpectAsNaive(DataType dtype, const std::vector<T>& values, const void* data) {
  const auto seen = ComputeStatistics(dtype, data, values.size());
  ASSERT_TRUE(seen.has_value());
  const Naive expected(values);
  EXPECT_TRUE(SameNumber(AsDouble(seen->max), expected.max)) << AsDouble(seen->max);
  EXPECT_TRUE(SameNumber(AsDouble(seen->min), expected.min)) << AsDouble(seen->min);
  EXPECT_EQ(seen->nans, expected.nans);
  EXPECT_EQ(seen->negative_infinities, expected.negative);
  EXPECT_EQ(seen->positive_infinities, expected.positive);
  EXPECT_EQ(seen->count, values.size());
  // Integer-valued data: sums are exact, so only the running mean rounds: once an element.
  if (std::isfinite(expected.mean)) {
    const double bound = 1e-15 * static_cast<double>(values.size()) * 128;
    EXPECT_NEAR(seen->mean, expected.mean, bound);
  } else {
    EXPECT_TRUE(SameNumber(seen->mean, expected.mean)) << seen->mean << " " << expected.mean;
  }
}

TEST(Statistics, EveryLengthAndAlignment) {
  std::mt19937 random(3);
  std::vector<float> values(200);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 256) - 128);
  for (size_t offset = 0; offset < 3; ++offset) {
    for (size_t count = 1; count < 150; ++count) {
      const std::vector<float> part(values.begin() + static_cast<long>(offset),
                                    values.begin() + static_cast<long>(offset + count));
      ExpectAsNaive(DataType::kFloat, part, values.data() + offset);
      const std::vector<double> wide(part.begin(), part.end());
      ExpectAsNaive(DataType::kDouble, wide, wide.data());
    }
  }
}

TEST(Statistics, SpecialValuesAtEveryPlace) {
  for (const float special : {kNan, kInf, -kInf, -0.0f}) {
    for (size_t at = 0; at < 67; ++at) {
      std::vector<float> values(67, 1.0f);
      values[at] = special;
      ExpectAsNaive(DataType::kFloat, values, values.data());
      values[(at + 5) % 67] = kInf;
      values[(at + 9) % 67] = kNan;
      ExpectAsNaive(DataType::kFloat, values, values.data());
      values[(at + 13) % 67] = -kInf;
      ExpectAsNaive(DataType::kFloat, values, values.data());
    }
  }
}

TEST(Statistics, AnExtremeOfZeroHasTheSignOfTheFirst) {
  std::vector<float> values(40, -1.0f);
  values[7] = -0.0f;
  values[31] = 0.0f;
  EXPECT_TRUE(std::signbit(AsDouble(ComputeStatistics(DataType::kFloat, values.data(), 40)->max)));
  std::swap(values[7], values[31]);
  EXPECT_FALSE(std::signbit(AsDouble(ComputeStatistics(DataType::kFloat, values.data(), 40)->max)));
}

TEST(Statistics, Halves) {
  std::vector<uint16_t> halves;
  std::vector<uint16_t> bfloats;
  std::vector<float> values;
  for (int i = 0; i < 5000; ++i) {
    values.push_back(static_cast<float>(i % 64 - 10));
    halves.push_back(Float16::FromFloat(values.back()));
    bfloats.push_back(Bfloat16::FromFloat(values.back()));
  }
  ExpectAsNaive(DataType::kFloat16, values, halves.data());
  ExpectAsNaive(DataType::kBfloat16, values, bfloats.data());
  values[4000] = kInf;
  halves[4000] = Float16::FromFloat(kInf);
  ExpectAsNaive(DataType::kFloat16, values, halves.data());
}

template <typename T>
void CheckIntegers(DataType dtype) {
  const std::vector<T> values = {3, std::numeric_limits<T>::max(), 0, std::numeric_limits<T>::min(),
                                 7};
  const auto seen = ComputeStatistics(dtype, values.data(), values.size());
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(AsDouble(seen->max), static_cast<double>(std::numeric_limits<T>::max()));
  EXPECT_EQ(AsDouble(seen->min), static_cast<double>(std::numeric_limits<T>::min()));
  EXPECT_EQ(seen->nans + seen->negative_infinities + seen->positive_infinities, 0u);
}

TEST(Statistics, Integers) {
  CheckIntegers<int8_t>(DataType::kInt8);
  CheckIntegers<uint8_t>(DataType::kUint8);
  CheckIntegers<int16_t>(DataType::kInt16);
  CheckIntegers<uint16_t>(DataType::kUint16);
  CheckIntegers<int32_t>(DataType::kInt32);
  CheckIntegers<uint32_t>(DataType::kUint32);
  CheckIntegers<int64_t>(DataType::kInt64);
  CheckIntegers<uint64_t>(DataType::kUint64);
  const uint8_t bools[] = {0, 1, 1, 0};
  EXPECT_EQ(ComputeStatistics(DataType::kBool, bools, 4)->mean, 0.5);
}

TEST(Statistics, SumsThatNoDoubleHolds) {
  const std::vector<double> values(10, 1e308);
  EXPECT_EQ(ComputeStatistics(DataType::kDouble, values.data(), 10)->mean, 1e308);
}

TEST(Statistics, L2norm) {
  const std::vector<float> values = {3, -4};
  EXPECT_EQ(ComputeStatistics(DataType::kFloat, values.data(), 2)->l2norm, 5);
}

TEST(Statistics, WhatHasNone) {
  const float value = 1;
  EXPECT_FALSE(ComputeStatistics(DataType::kFloat, &value, 0).has_value());
  EXPECT_FALSE(ComputeStatistics(DataType::kComplex64, &value, 1).has_value());
  EXPECT_FALSE(HasStatistics(DataType::kString));
}

DumpTensor Described(DataType dtype, Shape shape) {
  DumpTensor tensor;
  tensor.type = {dtype, std::move(shape)};
  tensor.size = tensor.type.bytes();
  return tensor;
}

TEST(StatisticsCsv, WriterA) {
  const StatisticsCsv csv(DefaultStatistics());
  EXPECT_EQ(csv.Header(),
            "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg "
            "Value,Count,Nan Count,Negative Inf Count,Positive Inf Count\n");
  const std::vector<float> values = {1, 2, 3, 4.5, kNan, 0.25};
  const DumpTensor tensor = Described(DataType::kFloat, {2, 3});
  EXPECT_EQ(csv.Row("Input", 0, tensor, ComputeStatistics(DataType::kFloat, values.data(), 6)),
            "Input,0,24,DT_FLOAT,ND,2x3,4.5,0.25,nan,6,1,0,0\n");
  const std::vector<int8_t> small = {65, -7};
  EXPECT_EQ(csv.Row("Output", 1, Described(DataType::kInt8, {2}),
                    ComputeStatistics(DataType::kInt8, small.data(), 2)),
            "Output,1,2,DT_INT8,ND,2,65,-7,29,2,0,0,0\n");
  const float big = 123456789;
  EXPECT_EQ(csv.Row("Output", 0, Described(DataType::kFloat, {}),
                    ComputeStatistics(DataType::kFloat, &big, 1)),
            "Output,0,4,DT_FLOAT,ND,-,1.23457e+08,1.23457e+08,1.23457e+08,1,0,0,0\n");
  // bfloat16 is behind DT_DUAL; an empty tensor has no element 0.
  EXPECT_FALSE(csv.Shows(DataType::kBfloat16));
  EXPECT_EQ(csv.Row("Output", 0, Described(DataType::kBfloat16, {2}), std::nullopt),
            "Output,0,4,-,ND,2,,,,,,,\n");
  EXPECT_EQ(csv.Row("Output", 0, Described(DataType::kFloat, {0, 3}), std::nullopt),
            "Output,0,0,DT_FLOAT,ND,0x3,,,,,,,\n");
}

TEST(StatisticsCsv, WriterB) {
  const StatisticsCsv csv({Statistic::kMax, Statistic::kL2norm});
  EXPECT_EQ(csv.Header(),
            "Input/Output,Index,Data Size,Data Type,Format,Shape,Count,Max Value ,l2norm\n");
  const std::vector<uint16_t> values = {Bfloat16::FromFloat(3), Bfloat16::FromFloat(-4)};
  ASSERT_TRUE(csv.Shows(DataType::kBfloat16));
  EXPECT_EQ(csv.Row("Output", 0, Described(DataType::kBfloat16, {2}),
                    ComputeStatistics(DataType::kBfloat16, values.data(), 2)),
            "Output,0,4,DT_BF16,ND,2,2,3,5\n");
  EXPECT_EQ(csv.Row("Output", 0, Described(DataType::kComplex64, {2}), std::nullopt),
            "Output,0,16,DT_COMPLEX64,ND,2,2,NA,NA\n");
}

}  // namespace
}  // namespace npumesh
