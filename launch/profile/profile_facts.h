// ProfileFacts: the numbers of a profile that a person needs first.
//
// All times are nanoseconds. The time of a step on a rank is divided into parts that never overlap
// and whose sum is the step's wall time:
//   computing    operators run, and no collective or message of the rank is under way
//   overlapped   operators run while one is under way
//   moving       no operator runs; all members have arrived, data move
//   waiting      no operator runs and nothing moves; the rank waits for others to arrive
//   preparing    none of these, but a copy between host and device or the making of a plan
//   idle         the rest
// An operator that is a collective itself (Hcom...), and the time of a fused operator in which the
// call of its name runs, count as that call.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_LAUNCH_PROFILE_PROFILE_FACTS_H_
#define NPUMESH_LAUNCH_PROFILE_PROFILE_FACTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launch/profile/clock_fit.h"
#include "launch/profile/collective_calls.h"
#include "runtime/profile/profile_file.h"

namespace npumesh {

struct TimeParts {
  int64_t wall_ns = 0;
  int64_t computing_ns = 0;
  int64_t overlapped_ns = 0;
  int64_t moving_ns = 0;
  int64_t waiting_ns = 0;
  int64_t preparing_ns = 0;
  int64_t idle_ns = 0;

  TimeParts& operator+=(const TimeParts& other);
};

struct StepFacts {
  uint32_t step = 0;  // Span::iteration
  int rank = 0;
  bool whole = true;  // false: the profile has no end of the step; its wall time is from its first
                      // span to its last
  TimeParts parts;
};

using TimesByName = std::map<std::string, int64_t>;

struct RankFacts {
  int rank = 0;
  std::string host;
  TimeParts parts;  // sums over the steps
  uint64_t collectives = 0;
  uint64_t came_last = 0;        // to collectives, for certain: by more than the clocks' bound
  int64_t others_waited_ns = 0;  // for this rank, when it came last; sum over the others
  uint64_t highest_memory = 0;   // bytes in use; 0: not counted
  TimesByName computing_in;      // operators
  TimesByName idle_before;       // operators and calls, in steps only
};

// An operator, or all of one type (`name` is empty then). Sums over ranks and steps.
struct OperatorFacts {
  std::string name;
  std::string type;
  uint64_t count = 0;
  int64_t total_ns = 0;
  double share = 0;      // of the time of all operators, 0 to 1
  double gflops = 0;     // per second, where the work is known; 0: unknown
  double gbytes = 0;     // per second, read and written; 0: unknown
  double intensity = 0;  // operations a byte; 0: unknown

  double mean_ns() const { return static_cast<double>(total_ns) / static_cast<double>(count); }
};

// The collectives of one kind, sums over ranks.
struct KindFacts {
  std::string kind;    // operator type, or the name of the call
  uint64_t calls = 0;  // of all members together one
  uint64_t spans = 0;  // of each member one
  uint64_t bytes = 0;  // of all spans
  int64_t moving_ns = 0;
  int64_t waiting_ns = 0;

  // GB/s of a member while data move; 0: nothing moved.
  double bandwidth() const;
};

// Which rank holds the others up (slowest_rank.h).
struct SlowestFacts {
  int rank = -1;           // the worst of those that stand out; -1: none does
  std::vector<int> ranks;  // that stand out, ascending
  int64_t late_ns = 0;     // of `rank`: how late it is to collectives, in all
  // The part of its time that is longer than the others' by the most, when that explains the
  // lateness: "computing", "moving", "preparing", "idle", "between steps"; and by how much.
  std::string part;
  int64_t part_ns = 0;
  std::string op;  // which it computes longer, or before which it idles; empty: no one operator
  bool computes_longest = false;
  bool waits_least = false;
  bool enters_last = false;
  std::string text;  // one sentence, for people
};

struct ProfileFacts {
  int world_size = 1;
  std::string command;
  size_t hosts = 1;
  int64_t clock_bound_ns = 0;
  bool clock_guessed = false;
  CauseCheck causes;
  std::vector<std::string> gaps;  // what the profile lacks, one line each; empty: it is whole
  std::vector<StepFacts> steps;   // by step, then rank
  std::vector<RankFacts> ranks;   // by rank
  SlowestFacts slowest;
  std::vector<OperatorFacts> operators;  // longest total first
  std::vector<OperatorFacts> types;      // longest total first
  std::vector<KindFacts> collectives;    // longest total first
};

// `profiles` by rank, not empty; `calls` and `clock` are theirs.
ProfileFacts FactsOf(const std::vector<RankProfile>& profiles, const CollectiveCalls& calls,
                     const CommonClock& clock);

// What the profile lacks: ranks without a file, without an end, with lost spans.
std::vector<std::string> GapsOf(const std::vector<RankProfile>& profiles);

// The kind of a collective or message: its operator type, else its name.
const std::string& KindOf(const ProfiledTask& task);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_PROFILE_FACTS_H_
