// Stretches: moments of one clock, as stretches that do not touch each other.
//
// Thread-safety: none for writers; readers may share.
#ifndef NPUMESH_LAUNCH_PROFILE_STRETCHES_H_
#define NPUMESH_LAUNCH_PROFILE_STRETCHES_H_

#include <cstdint>
#include <vector>

namespace npumesh {

class Stretches {
 public:
  struct Stretch {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;  // not part of it; above begin_ns
  };

  Stretches() = default;
  // In any order and overlapping; those that end before they begin, or at once, are left out.
  explicit Stretches(std::vector<Stretch> any);

  const std::vector<Stretch>& all() const { return all_; }  // ascending
  int64_t total_ns() const;

  // What lies in both; in this or the other; in this but not in the other.
  Stretches And(const Stretches& other) const;
  Stretches Or(const Stretches& other) const;
  Stretches Without(const Stretches& other) const;
  // The part that lies in one stretch of time; costs what it returns.
  Stretches In(Stretch window) const;

 private:
  std::vector<Stretch> all_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_STRETCHES_H_
