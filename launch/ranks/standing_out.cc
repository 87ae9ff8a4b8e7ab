#include "launch/ranks/standing_out.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace npumesh {
namespace {

constexpr size_t kFewestSamples = 3;
constexpr double kClearly = 2;       // times the mean of the others
constexpr double kMostError = 1e-4;  // of a test
constexpr size_t kWorstPart = 10;    // a tenth of the samples, rounded up, is left out of a mean
constexpr size_t kFewestToCut = 5;

// One-sided quantiles of Student's t at 1 - kMostError, by degrees of freedom; between two rows the
// stricter one holds.
struct Quantile {
  size_t freedom;
  double t;
};
constexpr std::array<Quantile, 12> kQuantiles = {{{2, 70.7},
                                                  {3, 22.2},
                                                  {4, 13.04},
                                                  {5, 9.68},
                                                  {6, 8.03},
                                                  {8, 6.45},
                                                  {10, 5.70},
                                                  {15, 4.89},
                                                  {20, 4.54},
                                                  {40, 4.10},
                                                  {100, 3.87},
                                                  {1000, 3.74}}};

double LimitOf(size_t freedom) {
  double limit = kQuantiles.front().t;
  for (const Quantile& row : kQuantiles) {
    if (row.freedom <= freedom) limit = row.t;
  }
  return limit;
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// How many values at an end are left out.
size_t CutOf(size_t count) {
  return count < kFewestToCut ? 0 : (count + kWorstPart - 1) / kWorstPart;
}

// The mean is above 0 by more than chance, when it is `error` off.
bool IsAbove(double mean, double error, size_t freedom) {
  return mean > 0 && mean >= LimitOf(freedom) * error;
}

double ErrorOf(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return std::sqrt(squares / (count - 1) / count);
}

bool IsPositiveInTheMean(const std::vector<double>& values) {
  return IsAbove(MeanOf(values), ErrorOf(values), values.size() - 1);
}

// The same with the ends cut off (Yuen, The two-sample trimmed t for unequal population variances,
// 1974): a few bad samples of others do not hide what is so in most.
bool IsPositiveInTheMiddle(std::vector<double> values) {
  const size_t cut = CutOf(values.size());
  if (cut == 0 || values.size() < 2 * cut + kFewestSamples) return false;
  std::sort(values.begin(), values.end());
  const std::vector<double> middle(values.begin() + static_cast<ptrdiff_t>(cut),
                                   values.end() - static_cast<ptrdiff_t>(cut));
  const double mean = MeanOf(middle);
  for (double& value : values) value = std::clamp(value, middle.front(), middle.back());
  const double part = static_cast<double>(middle.size()) / static_cast<double>(values.size());
  return IsAbove(mean, ErrorOf(values) / part, middle.size() - 1);
}

// How likely something of probability `p` happens `hits` times or more in `all`.
double ChanceOf(size_t hits, size_t all, double p) {
  double chance = 0;
  const auto n = static_cast<double>(all);
  for (size_t k = hits; k <= all; ++k) {
    const auto i = static_cast<double>(k);
    chance += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) +
                       i * std::log(p) + (n - i) * std::log1p(-p));
  }
  return chance;
}

bool IsMostlyPositive(const std::vector<double>& values) {
  const auto positive = static_cast<size_t>(
      std::count_if(values.begin(), values.end(), [](double value) { return value > 0; }));
  return ChanceOf(positive, values.size(), 0.5) <= kMostError;
}

// Of the samples in which any rank lost far more than usual, `rank` lost the most in more than
// chance gives it: so a rank stands out that is bad only now and then.
bool IsMostlyTheWorst(const std::vector<std::vector<double>>& samples, size_t rank) {
  constexpr double kFar = 3;  // times the median
  std::vector<double> worst;
  for (size_t i = 0; i < samples[0].size(); ++i) {
    double most = 0;
    for (const std::vector<double>& one : samples) most = std::max(most, one[i]);
    worst.push_back(most);
  }
  std::vector<double> sorted = worst;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2),
                   sorted.end());
  const double usual = sorted[sorted.size() / 2];
  size_t far = 0;
  size_t mine = 0;
  for (size_t i = 0; i < worst.size(); ++i) {
    if (worst[i] <= kFar * usual) continue;
    ++far;
    mine += samples[rank][i] == worst[i] ? 1 : 0;
  }
  const auto ranks = static_cast<double>(samples.size());
  return far > 0 && ChanceOf(mine, far, 1 / ranks) <= kMostError / ranks;
}

// By how much a rank is worse than the worst of `others`, in each sample.
std::vector<double> AboveAll(const std::vector<std::vector<double>>& samples, size_t rank,
                             const std::vector<size_t>& others) {
  std::vector<double> above = samples[rank];
  for (size_t i = 0; i < above.size(); ++i) {
    double worst = 0;
    for (const size_t other : others) worst = std::max(worst, samples[other][i]);
    above[i] -= worst;
  }
  return above;
}

}  // namespace

std::vector<size_t> StandingOut(const std::vector<std::vector<double>>& samples) {
  if (samples.size() < 2 || samples[0].size() < kFewestSamples) return {};
  std::vector<double> means;
  for (const std::vector<double>& one : samples) means.push_back(MeanWithout(one, Ends::kWorst));
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return means[a] > means[b]; });
  // The widest gap parts those that stand out from the others.
  size_t count = 0;
  double widest = kClearly;
  for (size_t k = 1; k <= samples.size() / 2; ++k) {
    const double next = means[order[k]];
    const double gap = next > 0                  ? means[order[k - 1]] / next
                       : means[order[k - 1]] > 0 ? std::numeric_limits<double>::infinity()
                                                 : 0;
    if (gap < widest || (count != 0 && gap == widest)) continue;
    widest = gap;
    count = k;
  }
  std::vector<size_t> out(order.begin(), order.begin() + static_cast<ptrdiff_t>(count));
  const std::vector<size_t> others(order.begin() + static_cast<ptrdiff_t>(count), order.end());
  for (const size_t rank : out) {
    const std::vector<double> above = AboveAll(samples, rank, others);
    const bool clear = IsPositiveInTheMean(above) || IsPositiveInTheMiddle(above) ||
                       IsMostlyPositive(above) || IsMostlyTheWorst(samples, rank);
    if (!clear) return {};
  }
  std::sort(out.begin(), out.end());
  return out;
}

double MeanWithout(std::vector<double> values, Ends ends) {
  if (values.empty()) return 0;
  const auto cut = static_cast<ptrdiff_t>(CutOf(values.size()));
  std::sort(values.begin(), values.end());
  const auto begin = values.begin() + (ends == Ends::kBoth ? cut : 0);
  const auto end = std::max(values.end() - cut, begin + 1);
  return MeanOf({begin, end});
}

std::vector<std::vector<double>> LostAgainstOthers(std::vector<std::vector<double>> times) {
  if (times.empty()) return times;
  for (size_t i = 0; i < times[0].size(); ++i) {
    std::vector<double> sample;
    for (const std::vector<double>& one : times) sample.push_back(one[i]);
    const auto middle = sample.begin() + static_cast<ptrdiff_t>((sample.size() - 1) / 2);
    std::nth_element(sample.begin(), middle, sample.end());
    const double usual = *middle;
    for (std::vector<double>& one : times) one[i] = std::max(0.0, one[i] - usual);
  }
  return times;
}

}  // namespace npumesh
