#include "launch/profile/stretches.h"

#include <algorithm>
#include <utility>

namespace npumesh {

Stretches::Stretches(std::vector<Stretch> any) {
  std::erase_if(any, [](const Stretch& one) { return one.end_ns <= one.begin_ns; });
  std::ranges::sort(any, {}, &Stretch::begin_ns);
  for (const Stretch& one : any) {
    if (!all_.empty() && one.begin_ns <= all_.back().end_ns) {
      all_.back().end_ns = std::max(all_.back().end_ns, one.end_ns);
    } else {
      all_.push_back(one);
    }
  }
}

int64_t Stretches::total_ns() const {
  int64_t total = 0;
  for (const Stretch& one : all_) total += one.end_ns - one.begin_ns;
  return total;
}

Stretches Stretches::And(const Stretches& other) const {
  Stretches both;
  auto mine = all_.begin();
  auto theirs = other.all_.begin();
  while (mine != all_.end() && theirs != other.all_.end()) {
    const int64_t begin = std::max(mine->begin_ns, theirs->begin_ns);
    const int64_t end = std::min(mine->end_ns, theirs->end_ns);
    if (begin < end) both.all_.push_back({begin, end});
    if (mine->end_ns < theirs->end_ns) {
      ++mine;
    } else {
      ++theirs;
    }
  }
  return both;
}

Stretches Stretches::Or(const Stretches& other) const {
  std::vector<Stretch> any = all_;
  any.insert(any.end(), other.all_.begin(), other.all_.end());
  return Stretches(std::move(any));
}

Stretches Stretches::Without(const Stretches& other) const {
  Stretches rest;
  auto theirs = other.all_.begin();
  for (const Stretch& one : all_) {
    int64_t begin = one.begin_ns;
    while (theirs != other.all_.end() && theirs->end_ns <= begin) ++theirs;
    for (auto hole = theirs; hole != other.all_.end() && hole->begin_ns < one.end_ns; ++hole) {
      if (begin < hole->begin_ns) rest.all_.push_back({begin, hole->begin_ns});
      begin = std::max(begin, hole->end_ns);
    }
    if (begin < one.end_ns) rest.all_.push_back({begin, one.end_ns});
  }
  return rest;
}

Stretches Stretches::In(Stretch window) const {
  Stretches part;
  auto one = std::ranges::upper_bound(all_, window.begin_ns, {}, &Stretch::end_ns);
  for (; one != all_.end() && one->begin_ns < window.end_ns; ++one) {
    part.all_.push_back(
        {std::max(one->begin_ns, window.begin_ns), std::min(one->end_ns, window.end_ns)});
  }
  return part;
}

}  // namespace npumesh
