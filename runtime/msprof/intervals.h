// Sets of moments, as sorted intervals, and what they have in common. All arithmetic is exact.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_RUNTIME_MSPROF_INTERVALS_H_
#define NPUMESH_RUNTIME_MSPROF_INTERVALS_H_

#include <cstdint>
#include <vector>

namespace npumesh {

// From begin to end, the end not included. Nanoseconds.
struct Interval {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;

  int64_t length() const { return end_ns - begin_ns; }
  bool Has(int64_t ns) const { return begin_ns <= ns && ns < end_ns; }
  bool operator==(const Interval&) const = default;
};

// A set of moments: intervals in order that neither touch nor are empty, as Union returns them.
using Intervals = std::vector<Interval>;

// The moments of any of `parts`, which may overlap, be empty and have any order. Intervals that end
// before they begin count as empty.
Intervals Union(std::vector<Interval> parts);

// The moments of `set` within `bounds`.
Intervals Within(const Intervals& set, const Interval& bounds);

// The moments of `set` that are not in `other`.
Intervals Without(const Intervals& set, const Intervals& other);

int64_t Length(const Intervals& set);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_INTERVALS_H_
