// Reads the flight record of one rank: bytes that may come from a crash, another version or another
// machine. Format: docs/formats/flight_record.md.
#ifndef NPUMESH_LAUNCH_RECORD_RECORD_FILE_H_
#define NPUMESH_LAUNCH_RECORD_RECORD_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/contract/flight_format.h"
#include "collectives/contract/request.h"
#include "runtime/base/status.h"

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

  bool creates_group() const { return kind == CollectiveKind::kNone; }
  bool done() const { return stage == flight::Stage::kDone; }
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
  std::vector<RecordedCall> calls;  // by sequence, the oldest kept first
  bool has_all_groups = true;       // false: some had no room in the table
  uint64_t forgotten = 0;           // calls that the ring has overwritten
  uint64_t damaged = 0;             // entries that make no sense and were left out

  // The last time of anything in it.
  int64_t last_ns() const;
  bool HasGroup(uint64_t id) const;  // in the table
};

// `path` is for messages. kCorrupt naming path, what was expected and what is there. Entries that
// make no sense are left out and counted: a record may be read while its rank is running.
Result<RankRecord> ParseRecord(std::string_view bytes, const std::string& path);

// All rank_<R>.npr of a folder, by rank. kNotFound when there is none; the first unreadable file is
// the error.
Result<std::vector<RankRecord>> ReadRecords(const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_RECORD_FILE_H_
