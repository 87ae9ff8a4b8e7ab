// Count, sum, least and greatest of durations by name: rows of the vendor's statistics.
#ifndef NPUMESH_RUNTIME_MSPROF_DURATION_STATISTIC_H_
#define NPUMESH_RUNTIME_MSPROF_DURATION_STATISTIC_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace npumesh {

struct DurationSums {
  std::vector<std::string> names;  // what the durations are of: type and core, level and name
  uint64_t count = 0;
  int64_t total_ns = 0;
  int64_t least_ns = 0;
  int64_t most_ns = 0;
  double squares_us = 0;

  std::string Average() const;   // microseconds, three decimals
  std::string Variance() const;  // of their square
};

// Thread-safety: one thread.
class DurationStatistic {
 public:
  void Add(std::vector<std::string> names, int64_t duration_ns);
  // By total, the greatest first; equal ones by name.
  std::vector<DurationSums> Sorted() const;
  int64_t total_ns() const { return total_ns_; }
  // Part of `sums` in the total, in percent with three decimals.
  std::string Ratio(const DurationSums& sums) const;

 private:
  std::map<std::vector<std::string>, DurationSums> sums_;
  int64_t total_ns_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_DURATION_STATISTIC_H_
