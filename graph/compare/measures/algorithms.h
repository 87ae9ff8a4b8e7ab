// The comparison algorithms of msaccucmp, by their names and with their special cases.
//
// x is "my" tensor, y the golden one, both cast to float32 first. Sums run in double, so that the
// sixth decimal does not depend on how many elements there are.
#ifndef NPUMESH_GRAPH_COMPARE_MEASURES_ALGORITHMS_H_
#define NPUMESH_GRAPH_COMPARE_MEASURES_ALGORITHMS_H_

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "graph/ir/shape.h"

namespace npumesh {

enum class CompareAlgorithm : uint8_t {
  kCosineSimilarity,
  kMaxAbsoluteError,
  kAccumulatedRelativeError,
  kRelativeEuclideanDistance,
  kKullbackLeiblerDivergence,
  kStandardDeviation,
  kMeanAbsoluteError,
  kRootMeanSquareError,
  kMaxRelativeError,
  kMeanRelativeError,
};

// In the order of the columns of result_*.csv.
inline constexpr std::array<CompareAlgorithm, 10> kAlgorithms = {
    CompareAlgorithm::kCosineSimilarity,          CompareAlgorithm::kMaxAbsoluteError,
    CompareAlgorithm::kAccumulatedRelativeError,  CompareAlgorithm::kRelativeEuclideanDistance,
    CompareAlgorithm::kKullbackLeiblerDivergence, CompareAlgorithm::kStandardDeviation,
    CompareAlgorithm::kMeanAbsoluteError,         CompareAlgorithm::kRootMeanSquareError,
    CompareAlgorithm::kMaxRelativeError,          CompareAlgorithm::kMeanRelativeError};

// "CosineSimilarity", ...
std::string_view Name(CompareAlgorithm algorithm);

struct Measurement {
  // A cell of result_*.csv: six decimals, "NaN", or "(mean;std),(mean;std)" with three.
  std::string text;
  // The same as a number; of StandardDeviation it is the golden's.
  double value = 0;
  // For the column CompareFailReason; empty: nothing to say.
  std::string reason;
};

// REQUIRES: x.size() == y.size(), the number of elements of `shape`.
Measurement Measure(CompareAlgorithm algorithm, std::span<const float> x, std::span<const float> y,
                    const Shape& shape);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_MEASURES_ALGORITHMS_H_
