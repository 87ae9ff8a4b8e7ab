#include "runtime/msprof/intervals.h"

#include <algorithm>

namespace npumesh {

Intervals Union(std::vector<Interval> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
  Intervals set;
  for (const Interval& part : parts) {
    if (part.length() <= 0) continue;
    if (!set.empty() && part.begin_ns <= set.back().end_ns) {
      set.back().end_ns = std::max(set.back().end_ns, part.end_ns);
    } else {
      set.push_back(part);
    }
  }
  return set;
}

Intervals Within(const Intervals& set, const Interval& bounds) {
  Intervals inside;
  for (const Interval& each : set) {
    const Interval cut{std::max(each.begin_ns, bounds.begin_ns),
                       std::min(each.end_ns, bounds.end_ns)};
    if (cut.length() > 0) inside.push_back(cut);
  }
  return inside;
}

Intervals Without(const Intervals& set, const Intervals& other) {
  Intervals rest;
  auto next = other.begin();
  for (const Interval& each : set) {
    int64_t from = each.begin_ns;
    while (next != other.end() && next->end_ns <= from) ++next;
    for (auto at = next; at != other.end() && at->begin_ns < each.end_ns; ++at) {
      if (from < at->begin_ns) rest.push_back({from, at->begin_ns});
      from = std::max(from, at->end_ns);
    }
    if (from < each.end_ns) rest.push_back({from, each.end_ns});
  }
  return rest;
}

int64_t Length(const Intervals& set) {
  int64_t sum = 0;
  for (const Interval& each : set) sum += each.length();
  return sum;
}

}  // namespace npumesh
