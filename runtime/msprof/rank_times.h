// Where the time of a rank went: computing, communication, both, neither; for the whole profile and
// for each iteration.
//
// Thread-safety: pure functions. What is returned points into the profile, which must outlive it
// and stay as it is.
#ifndef NPUMESH_RUNTIME_MSPROF_RANK_TIMES_H_
#define NPUMESH_RUNTIME_MSPROF_RANK_TIMES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/msprof/intervals.h"
#include "runtime/profile/profile_file.h"

namespace npumesh {

// Tasks that compute. Operators that call a communicator ("Hcom...") do not: their collectives have
// spans.
bool IsComputation(const RankProfile& profile, const Span& span);
// Collectives and messages.
bool IsCommunication(const Span& span);

// What a span is about; for a span without a subject an empty task.
const ProfiledTask& TaskOf(const RankProfile& profile, const Span& span);

// 0 for a span that ends before it begins.
int64_t DurationOf(const Span& span);

// A call of a communicator: until all members had entered it, and from then on. Together they are
// the length of the span. A call that does not know when the others came only moves.
struct CallTimes {
  int64_t waiting_ns = 0;
  int64_t moving_ns = 0;
};
CallTimes CallTimesOf(const Span& call);

// `wall` divided in four. Exactly: computing + not_overlapped + free = wall, and communication
// without not_overlapped is what computing and communication share.
struct BusyTimes {
  Interval wall;
  Intervals computing;
  Intervals communication;
  Intervals not_overlapped;  // communication without computing
  Intervals free;

  int64_t overlapped_ns() const { return Length(communication) - Length(not_overlapped); }
};

// Spans within `wall`: what they have outside of it does not count.
BusyTimes BusyTimesOf(const Interval& wall, const std::vector<const Span*>& computations,
                      const std::vector<const Span*>& calls);

// Spans by begin, those of one begin in the order of the profile, and what they add up to.
struct WorkTimes {
  BusyTimes busy;
  std::vector<const Span*> computations;
  std::vector<const Span*> calls;  // collectives and messages
  int64_t waiting_ns = 0;          // of all calls
  int64_t moving_ns = 0;
};

struct StepTimes : WorkTimes {
  const Span* iteration = nullptr;
  uint64_t number = 0;        // Span::number of the iteration
  int64_t latest_end_ns = 0;  // of this step and all that began before it
  // First begin of the operator fp_point, last end of bp_point; nullopt: it is not named or did not
  // run.
  std::optional<int64_t> fp_start_ns;
  std::optional<int64_t> bp_end_ns;
};

struct RankTimes : WorkTimes {   // of the whole profile; wall: from the first span of work or
                                 // iteration to the end of the last
  std::vector<StepTimes> steps;  // by begin

  // Index of the step that a span belongs to: it has the number of the step and begins in it.
  std::optional<size_t> StepOf(const Span& span) const;
};
RankTimes RankTimesOf(const RankProfile& profile);

// How long the device did nothing before each of `computations`, which are in order of their
// begin: max(0, begin - end of the one before). The first waits 0.
std::vector<int64_t> TaskWaits(const std::vector<const Span*>& computations);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_RANK_TIMES_H_
