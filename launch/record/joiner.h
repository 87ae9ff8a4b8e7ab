// Joins the flight records of all ranks and says what went wrong.
#ifndef NPUMESH_LAUNCH_RECORD_JOINER_H_
#define NPUMESH_LAUNCH_RECORD_JOINER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launch/record/record_file.h"

namespace npumesh {

// A group as the records of its members show it.
struct JoinedGroup {
  uint64_t id = 0;
  std::string name;
  std::vector<int> members;                 // world ranks that recorded it, ascending
  uint64_t common = 0;                      // last call that all of them have done; 0: none
  std::map<int, const RecordedCall*> last;  // by rank; null: it recorded no call
  std::map<uint64_t, std::map<int, const RecordedCall*>> calls;  // by call, by rank
};

// How a rank came to the calls that all members of their groups recorded.
struct LateRank {
  int rank = 0;
  uint64_t calls = 0;
  uint64_t came_last = 0;
  double late_ms = 0;  // behind the first rank, summed over its calls
  double most_late_ms = 0;
  double waited_ms = 0;  // for the last rank, summed
};

struct Joined {
  std::vector<JoinedGroup> groups;
  std::vector<LateRank> arrivals;     // ranks that were late most first
  std::vector<std::string> problems;  // one sentence each; empty: nothing is wrong
  std::vector<int> suspects;          // world ranks to look at first, ascending
};

// Nanoseconds to add to a record's times so that the times of all records can be compared: 0 when
// all were written under one boot, else from its clock to the time of day.
std::vector<int64_t> ClockOffsets(const std::vector<RankRecord>& records);

// `records` by rank, and outliving the result. kCorrupt when they cannot be of one run.
Result<Joined> Join(const std::vector<RankRecord>& records);

// "allreduce "x" float[64] sum", as the contract's messages name a call.
std::string CallText(const RecordedCall& call);

// Everything as text for people.
std::string JoinedText(const std::vector<RankRecord>& records, const Joined& joined);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_JOINER_H_
