#include "graph/compare/measures/algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace npumesh {
namespace {

using Floats = std::span<const float>;

// numpy's float64 epsilon, below which msaccucmp takes a norm or a divisor for zero.
constexpr double kEpsilon = 2.220446e-16;
constexpr double kFloatEpsilon = 1.1920929e-07;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kScalar = "This tensor is scalar.";
constexpr const char* kEmpty = "This tensor has no elements.";

std::string Text(double value, int decimals = 6) {
  return std::isnan(value) ? "NaN" : fmt::format("{:.{}f}", value, decimals);
}

Measurement Number(double value, std::string reason = {}) {
  return {Text(value), value, std::move(reason)};
}

bool IsScalar(const Shape& shape) {
  return std::all_of(shape.dims().begin(), shape.dims().end(),
                     [](int64_t dim) { return dim == 1; });
}

double Norm(Floats x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

Measurement Cosine(Floats x, Floats y, const Shape& shape) {
  if (IsScalar(shape)) return Number(1, kScalar);
  const double norm_x = Norm(x);
  const double norm_y = Norm(y);
  if (norm_x <= kEpsilon && norm_y <= kEpsilon) return Number(1);
  if (norm_x <= kEpsilon) return Number(kNan, "All elements of my output are zero.");
  if (norm_y <= kEpsilon) return Number(kNan, "All elements of the ground truth are zero.");
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] / norm_x) * (y[i] / norm_y);
  return Number(std::isnan(sum) ? sum : std::min(sum, 1.0));
}

double RelativeError(double x, double y) {
  return std::abs(y) > kEpsilon ? std::abs(x / y - 1) : 0;
}

// Largest, sum and count of an error over all elements; a NaN among them wins.
struct Errors {
  double largest = 0;
  double sum = 0;
  double squares = 0;
};

template <typename Error>
Errors Collect(Floats x, Floats y, Error error) {
  Errors errors;
  for (size_t i = 0; i < x.size(); ++i) {
    const double e = error(static_cast<double>(x[i]), static_cast<double>(y[i]));
    if (std::isnan(e) || e > errors.largest) errors.largest = std::isnan(errors.largest) ? kNan : e;
    errors.sum += e;
    errors.squares += e * e;
  }
  return errors;
}

Errors Absolute(Floats x, Floats y) {
  return Collect(x, y, [](double a, double b) { return std::abs(a - b); });
}

Errors Relative(Floats x, Floats y) {
  return Collect(x, y, RelativeError);
}

double Euclidean(Floats x, Floats y) {
  const double golden = Norm(y);
  return golden == 0 ? 0 : std::sqrt(Absolute(x, y).squares) / golden;
}

// Min-max normalised, clipped below, and scaled to the sum 1: a distribution.
std::vector<double> Distribution(Floats x) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const double range = static_cast<double>(*high) - *low;
  std::vector<double> result(x.begin(), x.end());
  double sum = 0;
  for (double& v : result) {
    if (range != 0) v = (v - *low) / range;
    v = std::isnan(v) ? v : std::max(v, kFloatEpsilon);
    sum += v;
  }
  for (double& v : result) v /= sum;
  return result;
}

double KullbackLeibler(Floats x, Floats y) {
  const std::vector<double> p = Distribution(x);
  const std::vector<double> q = Distribution(y);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] * std::log(p[i] / q[i]);
  return std::abs(sum) < kEpsilon ? 0 : sum;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments MomentsOf(Floats x) {
  const auto count = static_cast<double>(x.size());
  Moments moments;
  for (const float v : x) moments.mean += v;
  moments.mean /= count;
  for (const double v : x) moments.deviation += (v - moments.mean) * (v - moments.mean);
  moments.deviation = std::sqrt(moments.deviation / count);
  return moments;
}

std::string MomentsText(const Moments& moments) {
  const auto cut = [](double v) { return std::abs(v) < 0.001 ? 0.0 : v; };
  return fmt::format("({};{})", Text(cut(moments.mean), 3), Text(cut(moments.deviation), 3));
}

Measurement Deviation(Floats x, Floats y) {
  const Moments golden = MomentsOf(y);
  return {MomentsText(MomentsOf(x)) + "," + MomentsText(golden), golden.deviation, {}};
}

}  // namespace

std::string_view Name(CompareAlgorithm algorithm) {
  constexpr std::array<std::string_view, 10> kNames = {
      "CosineSimilarity",          "MaxAbsoluteError",          "AccumulatedRelativeError",
      "RelativeEuclideanDistance", "KullbackLeiblerDivergence", "StandardDeviation",
      "MeanAbsoluteError",         "RootMeanSquareError",       "MaxRelativeError",
      "MeanRelativeError"};
  return kNames[static_cast<size_t>(algorithm)];
}

Measurement Measure(CompareAlgorithm algorithm, Floats x, Floats y, const Shape& shape) {
  if (x.empty()) return Number(algorithm == CompareAlgorithm::kCosineSimilarity ? 1 : kNan, kEmpty);
  const auto count = static_cast<double>(x.size());
  switch (algorithm) {
    case CompareAlgorithm::kCosineSimilarity:
      return Cosine(x, y, shape);
    case CompareAlgorithm::kMaxAbsoluteError:
      return Number(Absolute(x, y).largest);
    case CompareAlgorithm::kAccumulatedRelativeError:
      return Number(Relative(x, y).sum);
    case CompareAlgorithm::kRelativeEuclideanDistance:
      return Number(Euclidean(x, y));
    case CompareAlgorithm::kKullbackLeiblerDivergence:
      return Number(KullbackLeibler(x, y));
    case CompareAlgorithm::kStandardDeviation:
      return Deviation(x, y);
    case CompareAlgorithm::kMeanAbsoluteError:
      return Number(Absolute(x, y).sum / count);
    case CompareAlgorithm::kRootMeanSquareError:
      return Number(std::sqrt(Absolute(x, y).squares / count));
    case CompareAlgorithm::kMaxRelativeError:
      return Number(Relative(x, y).largest);
    case CompareAlgorithm::kMeanRelativeError:
      return Number(Relative(x, y).sum / count);
  }
  return {};
}

}  // namespace npumesh
