// The flight records as a picture: a trace that Chrome's about:tracing and Perfetto show.
#ifndef NPUMESH_LAUNCH_RECORD_TIMELINE_H_
#define NPUMESH_LAUNCH_RECORD_TIMELINE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "launch/record/record_join.h"

namespace npumesh {

// Trace Event Format, JSON: one process for each rank, one track for each of its groups, named by
// the group, a slice for each call named by its operator, and in it one for the time until all had
// arrived, named by the rank that is waited for: of a call that all entered the last one to enter,
// of one that is still waiting those that did not come. At the end of what a blamed rank recorded
// an instant says why it is blamed, and each problem is an instant of the whole trace. Times are
// microseconds since the first record began. A call that was never left reaches to the end of the
// trace. Of each rank the last `most_calls` calls are drawn, and those that it has never left.
std::string TimelineJson(const std::vector<RankRecord>& records, const Joined& joined,
                         uint64_t most_calls = std::numeric_limits<uint64_t>::max());

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_TIMELINE_H_
