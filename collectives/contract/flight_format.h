// The bytes of a flight record, version 2. docs/formats/flight_record.md explains every field; the
// writer is flight_record.h, the reader launch/record/record_file.h.
//
//   file = RecordHeader | group_capacity x GroupRow | call_capacity x CallEntry
//          | notice_capacity x NoticeEntry
#ifndef NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_FORMAT_H_
#define NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace npumesh::flight {

// As in PNG: a first byte that is no text, and line ends that a text-mode copy would damage.
inline constexpr std::array<uint8_t, 8> kMagic = {0x89, 'N', 'P', 'R', '\r', '\n', 0x1a, '\n'};
inline constexpr uint32_t kVersion = 2;
inline constexpr uint32_t kOldestVersion = 1;       // has no notices: what is newer is zero
inline constexpr uint32_t kByteOrder = 0x01020304;  // as the writer's machine stores it

enum class State : uint32_t {
  kRunning = 1,    // no end was written: running, killed or crashed
  kShutDown = 2,   // orderly end, together with the other ranks
  kAbandoned = 3,  // the rank ended by itself, mostly after an error
};

struct RecordHeader {
  uint8_t magic[8];
  uint32_t byte_order;
  uint32_t version;
  uint32_t header_bytes;
  uint32_t group_bytes;
  uint32_t entry_bytes;
  uint32_t group_capacity;
  uint64_t call_capacity;
  int32_t rank;
  int32_t world_size;
  int32_t node;  // number of the node in the world
  int32_t process;
  int64_t start_monotonic_ns;
  int64_t start_realtime_ns;
  int64_t end_monotonic_ns;  // 0 while `state` is kRunning
  uint32_t state;            // State
  uint32_t groups;           // rows claimed; may exceed group_capacity
  uint64_t calls;            // entries claimed, ever
  char host[64];
  char boot_id[40];
  uint32_t notice_bytes;
  uint32_t notice_capacity;
  uint64_t notices;         // claimed, ever
  int64_t soft_timeout_ns;  // NPUMESH_SOFT_TIMEOUT; 0: not known
  uint64_t process_start;   // clock ticks after boot (proc(5), starttime); 0: not known
  uint64_t
      process_space;  // in which `process` is its number: inode of its pid namespace; 0: not known
  char reserved[272];
};
static_assert(sizeof(RecordHeader) == 512);
static_assert(offsetof(RecordHeader, call_capacity) == 32);
static_assert(offsetof(RecordHeader, start_monotonic_ns) == 56);
static_assert(offsetof(RecordHeader, calls) == 88);
static_assert(offsetof(RecordHeader, host) == 96 && offsetof(RecordHeader, notice_bytes) == 200);

struct GroupRow {
  uint64_t id;  // equal on all members; written last, 0: empty row
  uint32_t size;
  int32_t group_rank;
  char name[64];
  char members[176];  // world ranks in ascending order, "0-3,8"; cut at a comma when too long
};
static_assert(sizeof(GroupRow) == 256);

enum class Stage : uint32_t { kEntered = 1, kRunning = 2, kDeparting = 3, kDone = 4 };

struct CallEntry {
  uint64_t sequence;  // 1, 2, ...; entry i holds sequences with (sequence - 1) % capacity == i.
                      // 0 while the other fields are not whole
  uint64_t group;     // GroupRow::id
  uint64_t call;
  uint64_t count;
  uint64_t fingerprint;
  int64_t entered_ns;  // CLOCK_MONOTONIC, all three; 0: not yet
  int64_t arrived_ns;
  int64_t done_ns;
  uint32_t kind;    // CollectiveKind
  int32_t dtype;    // DataType
  uint32_t op;      // ReduceOp
  int32_t root;     // group rank
  uint32_t stage;   // Stage
  uint32_t status;  // Code, once the stage is kDone
  char node[104];
};
static_assert(sizeof(CallEntry) == 192);
static_assert(offsetof(CallEntry, kind) == 64 && offsetof(CallEntry, node) == 88);

// What a wait has said aloud.
struct NoticeEntry {
  uint64_t sequence;  // as CallEntry::sequence
  uint64_t group;     // 0: a wait outside of groups
  uint64_t call;
  int64_t time_ns;  // CLOCK_MONOTONIC
  int64_t waited_ns;
  uint32_t gave_up;  // 1: the wait failed, 0: it went on
  uint32_t reason;   // WaitReason
  char ranks[80];    // world ranks that explain the wait, "0-3,8"; cut at a comma when too long
  char text[640];
};
static_assert(sizeof(NoticeEntry) == 768);
static_assert(std::is_trivially_copyable_v<RecordHeader> &&
              std::is_trivially_copyable_v<GroupRow> && std::is_trivially_copyable_v<CallEntry> &&
              std::is_trivially_copyable_v<NoticeEntry>);

}  // namespace npumesh::flight

#endif  // NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_FORMAT_H_
