#include "runtime/msprof/duration_statistic.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/msprof/profile_text.h"

namespace npumesh {

std::string DurationSums::Average() const {
  return fmt::format("{:.3f}", Microseconds(total_ns) / static_cast<double>(count));
}

std::string DurationSums::Variance() const {
  const double average = Microseconds(total_ns) / static_cast<double>(count);
  const double variance = squares_us / static_cast<double>(count) - average * average;
  return fmt::format("{:.3f}", std::max(0.0, variance));
}

void DurationStatistic::Add(std::vector<std::string> names, int64_t duration_ns) {
  const auto [at, fresh] = sums_.try_emplace(std::move(names));
  DurationSums& sums = at->second;
  if (fresh) {
    sums.names = at->first;
    sums.least_ns = duration_ns;
  }
  ++sums.count;
  sums.total_ns += duration_ns;
  sums.least_ns = std::min(sums.least_ns, duration_ns);
  sums.most_ns = std::max(sums.most_ns, duration_ns);
  sums.squares_us += Microseconds(duration_ns) * Microseconds(duration_ns);
  total_ns_ += duration_ns;
}

std::vector<DurationSums> DurationStatistic::Sorted() const {
  std::vector<DurationSums> sorted;
  for (const auto& [names, sums] : sums_) sorted.push_back(sums);
  std::stable_sort(sorted.begin(), sorted.end(), [](const DurationSums& a, const DurationSums& b) {
    return a.total_ns > b.total_ns;
  });
  return sorted;
}

std::string DurationStatistic::Ratio(const DurationSums& sums) const {
  if (total_ns_ == 0) return "0.000";
  return fmt::format("{:.3f}",
                     100.0 * static_cast<double>(sums.total_ns) / static_cast<double>(total_ns_));
}

}  // namespace npumesh
