// Blame: at which ranks to look first, from what the records of all ranks say together.
//
// Which rank leaves a job first is a race, so the causes are asked in an order in which each can
// only be a consequence of those before it:
//   1. mismatch: the minority of a call that the members do not agree on
//   2. circle, stopped, ended: what a wait knew for certain when it failed, or when it warned and
//                never ended; and what logs of other libraries name with its cause
//   3. killed:   a rank that a signal has ended, as the launcher saw it, or that a watcher of
//                another library found dead
//   4. missing:  a rank that others wait for and that neither waits nor gave up: stopped, dead,
//                gone or without a record; or one that came after another had given up
//   5. circle:   ranks that wait for each other; then missing again, ranks that stayed in a call in
//                which another gave up
//   6. failed:   a rank whose own call failed, not because of another rank
//   7. stopped, ended, late: what a wait has warned of, though it ended well; then ranks that came
//                to a call later than the limit for a warning
//   8. lost:     a rank whose record just ends, or else the one that gave up first; no rank when
//                the job was ended from outside
#ifndef NPUMESH_LAUNCH_RECORD_BLAME_H_
#define NPUMESH_LAUNCH_RECORD_BLAME_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/contract/request.h"
#include "collectives/contract/wait_graph.h"
#include "launch/record/cause.h"
#include "launch/record/launch_note.h"
#include "launch/record/record_file.h"

namespace npumesh {

// The members of a group at one of its calls.
using CallByRank = std::map<int, const RecordedCall*>;

// A group as the records of its members show it.
struct JoinedGroup {
  uint64_t id = 0;
  std::string name;
  std::vector<int> members;              // world ranks that recorded it, ascending
  uint64_t common = 0;                   // last call that all of them have done; 0: none
  CallByRank last;                       // by rank, but calls that are queued; null: no call
  std::map<uint64_t, CallByRank> calls;  // by call
};

struct Blame {
  Cause cause = Cause::kNone;
  std::vector<int> ranks;  // world ranks, ascending; empty: none
  std::string text;        // why, of the ranks as subject: "their count differs ..."
};

// `records` by rank, `groups` of all of them. `note`: may be null.
Blame FindBlame(const std::vector<RankRecord>& records, const std::vector<JoinedGroup>& groups,
                const LaunchNote* note);

// ---- what it goes by ----

// Nanoseconds to add to a record's times so that the times of all records can be compared: 0 when
// all were written under one boot, else from its clock to the time of day.
std::vector<int64_t> ClockOffsets(const std::vector<RankRecord>& records);

// What the members asked for, by rank.
std::vector<Request> RequestsOf(const CallByRank& call);

// In what the requests of a call differ, beyond what may: values by rank. Where they agree, but the
// elements that foreign records say ranks hand in and get do not fit together, the field is kSizes.
// When only parts of names differ that no record holds, the field is "name" and the values are
// fingerprints.
inline constexpr std::string_view kSizes = "number of elements handed in and received";
std::optional<Disagreement> DisputeOf(const JoinedGroup& group, const CallByRank& call);

// The rank has left its last call with an error: it did not die in it. Whether its process then
// wrote an end of its record depends on the program.
bool LeftWithError(const RankRecord& record);

// A rank whose ring has forgotten all calls of a group says nothing about it. A group that is not
// in its table it has not begun to create.
bool IsForgotten(const RankRecord& record, const JoinedGroup& group);

// How far a rank has come in a group, by its last call there: 0 when it has recorded none, 1 in the
// creation of the group, n + 1 in call n.
uint64_t PlaceOf(const RecordedCall* last);

// A call that all members of its group entered, the last of them so late that a wait has to warn.
struct LateCall {
  const JoinedGroup* group = nullptr;
  uint64_t call = 0;
  int rank = 0;           // the last to enter
  int64_t waited_ns = 0;  // by the clock of the rank that waited longest
};

// Those of all groups; creations of groups are none, because ranks start when they can.
std::vector<LateCall> LateCallsOf(const std::vector<RankRecord>& records,
                                  const std::vector<JoinedGroup>& groups);

// Who waits for whom, those that have given up included.
std::vector<Wait> WaitsOf(const std::vector<RankRecord>& records,
                          const std::vector<JoinedGroup>& groups);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_BLAME_H_
