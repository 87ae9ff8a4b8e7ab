// The flight records as a picture: a trace that Chrome's about:tracing and Perfetto show.
#ifndef NPUMESH_LAUNCH_RECORD_TIMELINE_H_
#define NPUMESH_LAUNCH_RECORD_TIMELINE_H_

#include <string>
#include <vector>

#include "launch/record/record_join.h"

namespace npumesh {

// Trace Event Format, JSON: one process for each rank, one track for each of its groups, a slice
// for each call and in it one for the time until all had arrived. Times are microseconds since the
// first record began. A call that was never left reaches to the end of the trace.
std::string TimelineJson(const std::vector<RankRecord>& records, const Joined& joined);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_TIMELINE_H_
