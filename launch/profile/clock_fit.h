// CommonClock: one clock for the spans of all ranks.
//
// Ranks with equal boot ids share CLOCK_MONOTONIC. Between hosts the samples that the ranks took
// beside node 0 are fitted by a line, because clocks drift: offset = offset at a reference + drift
// * (time - reference). Without samples the time of day stands in, whose error is not known.
//
// Thread-safety: pure functions; a CommonClock is immutable.
#ifndef NPUMESH_LAUNCH_PROFILE_CLOCK_FIT_H_
#define NPUMESH_LAUNCH_PROFILE_CLOCK_FIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launch/profile/collective_calls.h"
#include "runtime/profile/profile_file.h"

namespace npumesh {

// How to read the clock of a host: nanoseconds to add to it.
struct ClockFit {
  int64_t reference_ns = 0;  // of the host's clock
  double offset_ns = 0;      // at the reference
  double drift = 0;          // nanoseconds of offset a nanosecond
  int64_t bound_ns = 0;      // no reading is further off; 0 on the host of the common clock
  size_t samples = 0;        // that the fit goes by
  size_t dropped = 0;        // the slowest tenth
  bool guessed = false;      // by the time of day: the bound is not known

  int64_t At(int64_t local_ns) const;
};

// A fit of one host's samples. Drops the tenth with the largest bounds; the error bound is the
// largest residual and the smallest half round trip. A drift of more than 200 parts in a million is
// no drift of a clock but noise of samples that lie close together, and is taken as 0.
// REQUIRES: not empty.
ClockFit FitClock(std::vector<ClockSample> samples);

// Whether all times are some that a clock can show, so that sums of them are numbers, too. Error
// (kCorrupt): names the rank and the time.
Status CheckTimes(const std::vector<RankProfile>& profiles);

class CommonClock {
 public:
  // `profiles` by rank, not empty, with times that CheckTimes takes.
  explicit CommonClock(const std::vector<RankProfile>& profiles);

  // A moment of profile number `profile` on the common clock: nanoseconds since the first moment
  // of any profile.
  int64_t At(size_t profile, int64_t local_ns) const;
  // How far two moments of these profiles may be off each other; 0 on one host.
  int64_t BoundBetween(size_t one, size_t other) const;

  const ClockFit& fit(size_t profile) const { return fits_[host_of_[profile]]; }
  size_t host(size_t profile) const { return host_of_[profile]; }  // equal: they share a clock
  size_t hosts() const { return fits_.size(); }
  int64_t bound_ns() const;                         // the largest between two profiles
  bool guessed() const;                             // for any of them
  int64_t length_ns() const { return length_ns_; }  // from the first moment to the last

 private:
  void SetExtent(const std::vector<RankProfile>& profiles);

  std::vector<size_t> host_of_;  // by profile
  std::vector<ClockFit> fits_;   // by host
  int64_t begin_ns_ = 0;
  int64_t length_ns_ = 0;
};

// Whether every effect comes after its cause: no rank leaves a collective before all have entered.
struct CauseCheck {
  uint64_t calls = 0;       // with two members or more, of which one knows that all had come
  uint64_t violations = 0;  // a member's end lies before another's begin, by more than the bound
  int64_t worst_ns = 0;     // beyond the bound
};

// A member without an arrival did not wait for the others (a root that ran ahead), and is no
// witness.
CauseCheck CheckCauses(const CollectiveCalls& calls, const CommonClock& clock);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_CLOCK_FIT_H_
