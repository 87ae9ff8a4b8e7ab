// Reads the flight record of one rank: bytes that may come from a crash, another version or another
// machine. Format: docs/formats/flight_record.md. The records of other libraries, which
// launch/record/foreign reads, become the same RankRecord; the fields that only those have say so.
#ifndef NPUMESH_LAUNCH_RECORD_RECORD_FILE_H_
#define NPUMESH_LAUNCH_RECORD_RECORD_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/contract/flight_format.h"
#include "collectives/contract/request.h"
#include "launch/record/cause.h"
#include "runtime/base/status.h"
#include "runtime/world/wait_notices.h"

namespace npumesh {

struct RecordedGroup {
  uint64_t id = 0;
  uint32_t size = 0;
  int group_rank = 0;
  std::string name;
  std::string members;  // world ranks as text; may be cut or empty

  // Whether `members` names a world rank; false, too, when it is no list of ranks.
  bool HasMember(int world_rank) const;
};

// The ranks of "0-3,8"; empty when it is no list of ranks below `size`.
std::vector<int> RanksIn(std::string_view text, int size);

// Times are nanoseconds of the writer's CLOCK_MONOTONIC; 0: did not happen.
struct RecordedCall {
  uint64_t sequence = 0;
  uint64_t group = 0;
  uint64_t call = 0;
  uint64_t count = 0;
  uint64_t fingerprint = 0;
  int64_t entered_ns = 0;
  int64_t arrived_ns = 0;
  int64_t done_ns = 0;
  CollectiveKind kind = CollectiveKind::kNone;
  int32_t dtype = 0;
  uint32_t op = 0;
  int root = 0;
  flight::Stage stage = flight::Stage::kEntered;
  Code status = Code::kOk;
  std::string node;
  // Of foreign records:
  bool queued = false;  // handed in by the program, behind what is not done: not entered yet
  uint64_t sent = 0;    // elements that the rank hands in and gets; both 0: not known
  uint64_t received = 0;
  std::string place;  // "<file>:42 (step)": the user's line; empty: not known

  bool creates_group() const { return kind == CollectiveKind::kNone; }
  bool done() const { return stage == flight::Stage::kDone; }
};

// What a wait of the rank has said.
struct RecordedNotice {
  int64_t time_ns = 0;  // as those of calls
  WaitNotice notice;
  // Of foreign notices, which know more than a reason: the cause, and the text of the blame.
  Cause cause = Cause::kNone;
  std::string why;
};

// What has become of the process of a record without an end.
enum class ProcessFate : uint8_t {
  kUnknown,  // it is of another host, or nothing says when it began
  kGone,     // it was killed, or crashed
  kStopped,  // SIGSTOP
  kRunning,
};

struct RankRecord {
  std::string path;
  int rank = 0;
  int world_size = 1;
  int node = 0;
  int process = 0;
  int64_t start_monotonic_ns = 0;
  int64_t start_realtime_ns = 0;
  int64_t end_monotonic_ns = 0;
  flight::State state = flight::State::kRunning;
  std::string host;
  std::string boot_id;
  std::vector<RecordedGroup> groups;
  std::vector<RecordedCall> calls;      // by sequence, the oldest kept first
  std::vector<RecordedNotice> notices;  // as calls
  int64_t soft_timeout_ns = 0;          // after which a wait warns; 0: not known
  uint64_t process_start = 0;           // as ProcessStart; 0: not known
  uint64_t process_space = 0;           // as ProcessSpace; 0: not known
  ProcessFate fate = ProcessFate::kUnknown;
  bool has_all_groups = true;  // false: some had no room in the table
  uint64_t forgotten = 0;      // calls that the ring has overwritten
  uint64_t forgotten_notices = 0;
  uint64_t damaged = 0;  // entries that make no sense and were left out
  // Made by another library: it does not tell how its process ended nor when groups were created,
  // and calls may be handed in before earlier ones are done. `fate` is then what a watcher said.
  bool foreign = false;
  std::string watcher;  // who said so: "NCCL RAS"; empty: no watcher

  // The last time of anything in it.
  int64_t last_ns() const;
  bool HasGroup(uint64_t id) const;  // in the table
};

// `path` is for messages. kCorrupt naming path, what was expected and what is there. Entries that
// make no sense are left out and counted: a record may be read while its rank is running.
Result<RankRecord> ParseRecord(std::string_view bytes, const std::string& path);

// What this host says about the process of a record.
ProcessFate FateOf(const RankRecord& record);

// All rank_<R>.npr of a folder, by rank, with their fates. kNotFound without one; the first
// unreadable file is the error.
Result<std::vector<RankRecord>> ReadRecords(const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_RECORD_FILE_H_
