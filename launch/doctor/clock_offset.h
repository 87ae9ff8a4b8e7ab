// How far the clocks of two hosts are apart, from rounds in which their ranks met.
//
// Every round both read their clock before they enter and after they leave a meeting that neither
// leaves before both have entered. So with o = their clock - mine,
//   their exit >= my entry + o   and   my exit + o >= their entry,
// which bounds o from both sides; rounds narrow the bounds. No assumption about symmetry is made.
#ifndef NPUMESH_LAUNCH_DOCTOR_CLOCK_OFFSET_H_
#define NPUMESH_LAUNCH_DOCTOR_CLOCK_OFFSET_H_

#include <cstdint>
#include <vector>

#include "launch/doctor/host_report.h"

namespace npumesh {

// Nanoseconds of the wall clock around one meeting.
struct ClockMeeting {
  int64_t entry = 0;
  int64_t exit = 0;
};

// The offset lies in [low, high], in nanoseconds.
struct OffsetBounds {
  int64_t low = 0;
  int64_t high = 0;
};

// REQUIRES: as many meetings of both, at least one.
OffsetBounds BoundOffset(const std::vector<ClockMeeting>& mine,
                         const std::vector<ClockMeeting>& theirs);

// kWrong when the clocks are surely more than a second apart, advice above 10 ms: then the lines of
// their logs cannot be ordered.
Finding JudgeOffset(const OffsetBounds& bounds, const std::string& reference);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DOCTOR_CLOCK_OFFSET_H_
