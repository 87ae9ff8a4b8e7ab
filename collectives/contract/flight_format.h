// The bytes of a flight record, version 1. docs/formats/flight_record.md explains every field; the
// writer is flight_record.h, the reader launch/record/record_file.h.
//
//   file = RecordHeader | group_capacity x GroupRow | call_capacity x CallEntry
#ifndef NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_FORMAT_H_
#define NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace npumesh::flight {

// As in PNG: a first byte that is no text, and line ends that a text-mode copy would damage.
inline constexpr std::array<uint8_t, 8> kMagic = {0x89, 'N', 'P', 'R', '\r', '\n', 0x1a, '\n'};
inline constexpr uint32_t kVersion = 1;
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
  char reserved[312];
};
static_assert(sizeof(RecordHeader) == 512);
static_assert(offsetof(RecordHeader, call_capacity) == 32);
static_assert(offsetof(RecordHeader, start_monotonic_ns) == 56);
static_assert(offsetof(RecordHeader, calls) == 88);
static_assert(offsetof(RecordHeader, host) == 96);

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
static_assert(std::is_trivially_copyable_v<RecordHeader> &&
              std::is_trivially_copyable_v<GroupRow> && std::is_trivially_copyable_v<CallEntry>);

}  // namespace npumesh::flight

#endif  // NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_FORMAT_H_
