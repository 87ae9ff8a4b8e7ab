// The profiles of all ranks as one trace that Perfetto and Chrome's about:tracing show.
//
// Trace Event Format, JSON. A process for each rank, a thread for each lane (and one for the
// steps). A collective is two slices: waiting, from its begin to the arrival of the last member,
// and moving, from there to its end. An arrow leads from the member that entered last to the moving
// of each other. Counters: HBM in use, and the bytes that the rank's calls have moved so far. Times
// are microseconds on the common clock. docs/profile.md says how to read it.
#ifndef NPUMESH_LAUNCH_PROFILE_JOINED_TRACE_H_
#define NPUMESH_LAUNCH_PROFILE_JOINED_TRACE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/profile/clock_fit.h"
#include "launch/profile/collective_calls.h"
#include "runtime/profile/profile_file.h"

namespace npumesh {

// Perfetto's page takes about this much without another program beside it.
inline constexpr uint64_t kMostTraceBytes = uint64_t{1} << 30;

struct TraceSummary {
  uint64_t bytes = 0;
  uint64_t spans = 0;     // drawn
  uint64_t left_out = 0;  // spans that the limit had no room for; of each rank the last ones
};

// Takes the next part of a text.
using TextSink = std::function<Status(std::string_view)>;

// Writes the trace piece by piece; the whole text is never in memory.
// Ranks share `most_bytes` evenly, and what one does not need the ranks after it may use; the names
// of ranks and lanes are always written. Error: that of `sink`.
Result<TraceSummary> WriteTrace(const std::vector<RankProfile>& profiles,
                                const CollectiveCalls& calls, const CommonClock& clock,
                                const TextSink& sink, uint64_t most_bytes = kMostTraceBytes);

// "compute stream", "communication stream", "stream 7", "host".
std::string LaneName(uint16_t lane);

// What a span is about, for people: the name of its operator or call, "step 3", "plan".
std::string SpanName(const RankProfile& profile, const Span& span);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_JOINED_TRACE_H_
