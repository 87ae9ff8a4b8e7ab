#include "launch/bench/timing.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace npumesh {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A rank that waits yields, which Linux counts as an involuntary switch: it could have gone on.
int64_t Switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

}  // namespace

void BenchTimes::Append(const BenchTimes& more) {
  nanoseconds.insert(nanoseconds.end(), more.nanoseconds.begin(), more.nanoseconds.end());
  switches += more.switches;
}

Result<BenchTimes> TimeRound(const Pace& pace, const std::function<Status(int)>& call) {
  for (int i = 0; i < pace.warm_ups; ++i) NPUMESH_RETURN_IF_ERROR(call(i));
  BenchTimes taken;
  taken.nanoseconds.resize(static_cast<size_t>(pace.iterations));
  const int64_t switches = Switches();
  int64_t before = Now();
  for (int i = 0; i < pace.iterations; ++i) {
    if (pace.meet) {
      NPUMESH_RETURN_IF_ERROR(pace.meet());
      before = Now();
    }
    NPUMESH_RETURN_IF_ERROR(call(i));
    const int64_t after = Now();
    taken.nanoseconds[static_cast<size_t>(i)] = after - before;
    before = after;
  }
  taken.switches = Switches() - switches;
  return taken;
}

Timing Summarise(std::span<const BenchTimes> ranks, int iterations) {
  const auto per_round = static_cast<size_t>(iterations);
  const size_t calls = ranks[0].nanoseconds.size();
  std::vector<double> slowest;
  std::vector<double> averages;
  for (size_t first = 0; first < calls; first += per_round) {
    double longest = 0;
    for (const BenchTimes& rank : ranks) {
      double elapsed = 0;
      for (size_t i = first; i < first + per_round; ++i) {
        elapsed += static_cast<double>(rank.nanoseconds[i]);
      }
      longest = std::max(longest, elapsed);
    }
    averages.push_back(longest / iterations / 1e3);
    for (size_t i = first; i < first + per_round; ++i) {
      int64_t most = 0;
      for (const BenchTimes& rank : ranks) most = std::max(most, rank.nanoseconds[i]);
      slowest.push_back(static_cast<double>(most) / 1e3);
    }
  }
  double switches = 0;
  for (const BenchTimes& rank : ranks) switches += static_cast<double>(rank.switches);
  switches /= static_cast<double>(ranks.size() * calls);
  return {Quantile(averages, 0.5), Quantile(slowest, 0.5), Quantile(slowest, 0.99), switches};
}

double Quantile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  const double position = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double weight = position - static_cast<double>(below);
  return values[below] * (1 - weight) + values[above] * weight;
}

double GeometricMean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace npumesh
