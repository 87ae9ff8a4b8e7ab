// What benchmarks that measure two things in turns share.
#ifndef NPUMESH_TESTS_BENCH_TIMING_H_
#define NPUMESH_TESTS_BENCH_TIMING_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

namespace npumesh {

// REQUIRES: there are values.
template <typename T>
T MedianOf(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Median over the rounds of the slower rank's time.
template <typename T>
T MedianOfSlower(const std::array<std::vector<T>, 2>& ranks) {
  std::vector<T> slower;
  for (size_t i = 0; i < ranks[0].size(); ++i) slower.push_back(std::max(ranks[0][i], ranks[1][i]));
  return MedianOf(std::move(slower));
}

// Seconds of one call.
template <typename Work>
double SecondsOf(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Median seconds of two works that take turns, so that a disturbance meets both.
template <typename First, typename Second>
std::array<double, 2> MediansInTurn(int rounds, First first, Second second) {
  std::vector<double> firsts, seconds;
  for (int round = 0; round < rounds; ++round) {
    firsts.push_back(SecondsOf(first));
    seconds.push_back(SecondsOf(second));
  }
  return {MedianOf(std::move(firsts)), MedianOf(std::move(seconds))};
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_BENCH_TIMING_H_
