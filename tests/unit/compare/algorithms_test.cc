#include "graph/compare/measures/algorithms.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/unit/compare/float_tensor.h"

namespace npumesh {
namespace {

std::string TextOf(CompareAlgorithm algorithm, const std::vector<float>& x,
                   const std::vector<float>& y) {
  return Measure(algorithm, x, y, Shape{static_cast<int64_t>(x.size())}).text;
}

// Worked out by hand from the formulas.
TEST(Algorithms, Numbers) {
  struct Case {
    CompareAlgorithm algorithm;
    std::vector<float> x, y;
    const char* text;
  };
  const std::vector<Case> cases = {
      {CompareAlgorithm::kCosineSimilarity, {3, 4}, {4, 3}, "0.960000"},
      {CompareAlgorithm::kCosineSimilarity, {1, 0}, {-1, 0}, "-1.000000"},
      {CompareAlgorithm::kCosineSimilarity, {0, 0}, {0, 0}, "1.000000"},
      {CompareAlgorithm::kCosineSimilarity, {0, 0}, {1, 0}, "NaN"},
      {CompareAlgorithm::kCosineSimilarity, {1, 0}, {0, 0}, "NaN"},
      {CompareAlgorithm::kCosineSimilarity, {kNan, 1}, {1, 1}, "NaN"},
      {CompareAlgorithm::kMaxAbsoluteError, {1, 2, 3}, {1, 4, 2.5f}, "2.000000"},
      {CompareAlgorithm::kMaxAbsoluteError, {1, kNan, 9}, {1, 4, 2}, "NaN"},
      {CompareAlgorithm::kAccumulatedRelativeError, {2, 3, 5}, {1, 4, 0}, "1.250000"},
      {CompareAlgorithm::kRelativeEuclideanDistance, {3, 4}, {0, 4}, "0.750000"},
      {CompareAlgorithm::kRelativeEuclideanDistance, {3, 4}, {0, 0}, "0.000000"},
      {CompareAlgorithm::kMeanAbsoluteError, {1, 2, 3, 4}, {1, 4, 2, 4}, "0.750000"},
      {CompareAlgorithm::kRootMeanSquareError, {1, 2, 3, 8}, {1, 4, 3, 4}, "2.236068"},
      {CompareAlgorithm::kMaxRelativeError, {2, 3, 5}, {1, 4, 0}, "1.000000"},
      {CompareAlgorithm::kMeanRelativeError, {2, 3, 5, 7}, {1, 4, 0, 7}, "0.312500"},
      {CompareAlgorithm::kStandardDeviation, {1, 3}, {2, 2}, "(2.000;1.000),(2.000;0.000)"},
      {CompareAlgorithm::kStandardDeviation,
       {5e-4f, 5e-4f},
       {-4, 4},
       "(0.000;0.000),(0.000;4.000)"},
      // p = (eps, 1) / (1 + eps), q = (1, eps) / (1 + eps): ln(1 / eps) * (1 - eps) / (1 + eps).
      {CompareAlgorithm::kKullbackLeiblerDivergence, {0, 2}, {3, 1}, "15.942381"},
      {CompareAlgorithm::kKullbackLeiblerDivergence, {1, 2}, {10, 20}, "0.000000"},
      {CompareAlgorithm::kKullbackLeiblerDivergence, {7, 7}, {3, 3}, "0.000000"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(TextOf(c.algorithm, c.x, c.y), c.text) << Name(c.algorithm);
  }
}

TEST(Algorithms, AFileWithItselfIsOneAndZeros) {
  const std::vector<float> x = {0.5f, -3, 1e-20f, 4096};
  for (const CompareAlgorithm algorithm : kAlgorithms) {
    if (algorithm == CompareAlgorithm::kStandardDeviation) continue;
    const bool cosine = algorithm == CompareAlgorithm::kCosineSimilarity;
    EXPECT_EQ(TextOf(algorithm, x, x), cosine ? "1.000000" : "0.000000") << Name(algorithm);
  }
}

TEST(Algorithms, CosineOfAScalarIsOneWithAReason) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1, 1}}) {
    const std::vector<float> x = {2}, y = {-5};
    const Measurement cosine = Measure(CompareAlgorithm::kCosineSimilarity, x, y, shape);
    EXPECT_EQ(cosine.text, "1.000000");
    EXPECT_EQ(cosine.reason, "This tensor is scalar.");
  }
}

TEST(Algorithms, ReasonsForAZeroNorm) {
  const std::vector<float> zero = {0, 0}, one = {1, 0};
  EXPECT_THAT(Measure(CompareAlgorithm::kCosineSimilarity, zero, one, Shape{2}).reason,
              testing::HasSubstr("my output"));
  EXPECT_THAT(Measure(CompareAlgorithm::kCosineSimilarity, one, zero, Shape{2}).reason,
              testing::HasSubstr("ground truth"));
}

TEST(Algorithms, NoElementsGiveAReasonEverywhere) {
  for (const CompareAlgorithm algorithm : kAlgorithms) {
    const Measurement measured = Measure(algorithm, {}, {}, Shape{0, 4});
    EXPECT_FALSE(measured.reason.empty()) << Name(algorithm);
  }
}

TEST(Algorithms, NamesAreTheColumnsOfMsaccucmp) {
  EXPECT_EQ(Name(CompareAlgorithm::kCosineSimilarity), "CosineSimilarity");
  EXPECT_EQ(Name(CompareAlgorithm::kKullbackLeiblerDivergence), "KullbackLeiblerDivergence");
  EXPECT_EQ(Name(CompareAlgorithm::kMeanRelativeError), "MeanRelativeError");
}

}  // namespace
}  // namespace npumesh
