// Joins the flight records of all ranks and says what went wrong.
#ifndef NPUMESH_LAUNCH_RECORD_RECORD_JOIN_H_
#define NPUMESH_LAUNCH_RECORD_RECORD_JOIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/record/blame.h"
#include "launch/record/record_file.h"

namespace npumesh {

struct CommandReport;

// How a rank came to the calls that all members of their groups recorded.
struct LateRank {
  int rank = 0;
  uint64_t calls = 0;
  uint64_t came_last = 0;
  double late_ms = 0;  // after the first rank, summed over its calls
  double most_late_ms = 0;
  double waited_ms = 0;  // for the last rank, summed
};

struct Joined {
  std::vector<JoinedGroup> groups;
  std::vector<LateRank> arrivals;     // ranks that were late most first
  std::vector<std::string> problems;  // one sentence each; empty: nothing is wrong
  Blame blame;                        // at whom to look first; empty when nothing is wrong
};

// `records` by rank, and outliving the result. `note`: of the same run, if there is one. kCorrupt
// when the records cannot be of one run.
Result<Joined> Join(const std::vector<RankRecord>& records,
                    const std::optional<LaunchNote>& note = std::nullopt);

// "allreduce "x" float[64] sum", as the contract's messages name a call.
std::string CallText(const RecordedCall& call);

// "rank 1: the count of a call differs from that of the other ranks"; empty: no rank is to blame.
std::string BlameText(const Blame& blame);

// "look first at rank 1: ..." and the problems, a line each; "nothing is wrong" without one.
std::string VerdictText(const Joined& joined);

// Everything as text for people.
std::string JoinedText(const std::vector<RankRecord>& records, const Joined& joined);

// The same for programs: `npumesh record --json` (docs/json.md). Verdict "good" or "wrong".
CommandReport RecordReport(const std::vector<RankRecord>& records, const Joined& joined);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_RECORD_JOIN_H_
