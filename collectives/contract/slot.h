// Slot: the shared-memory layout by which the ranks of a node meet. Version 5.
//
//   shared area of a rank = directory (kSlots keys of 8 bytes) | slot 0 | slot 1 | ...
//
// A key is 0 for a free slot, else the number under which all members look for the group. Each
// cache line has one writer, the owner of the area, but for `Slot::part`.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_SLOT_H_
#define NPUMESH_COLLECTIVES_CONTRACT_SLOT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectives/contract/meeting.h"
#include "collectives/contract/request.h"

namespace npumesh {

inline constexpr size_t kCacheLine = 64;
inline constexpr uint64_t kClosedKey = ~uint64_t{0};

struct alignas(kCacheLine) Arrival {
  // Written last, with release: a reader of s with acquire sees the rest of call s.
  std::atomic<uint64_t> sequence;
  uint64_t fingerprint;
  uint64_t send_offset;
  uint64_t recv_offset;
  std::atomic<int32_t> cpu;  // on which the rank ran when it wrote this
};

struct alignas(kCacheLine) Departure {
  // Release: everything this rank has read and written for call s stands before it.
  std::atomic<uint64_t> sequence;
  std::atomic<int32_t> cpu;  // on which the rank ran when it last followed a sender (run_ahead.h)
};

// The member's part of a call, where members run each other's (shared_parts.h). Written by the
// member that runs it.
struct Part {
  std::atomic<uint64_t> taken;  // the last call of which a rank has taken it
  std::atomic<uint64_t> ended;  // release: all of it stands before it
};

// That a member gives a call up, or thinks of it (window_slots.h); 0: it does not. In the line that
// hardly ever changes, because every call reads it.
struct GivingUp {
  std::atomic<uint64_t> word;
};

// Eager data of one call that say themselves which call they belong to, so that a reader polls the
// line that it wants and reads nothing else (line_exchange.h).
struct alignas(kCacheLine) StampedLine {
  static constexpr uint64_t kBytes = kCacheLine - sizeof(uint64_t);

  std::byte data[kBytes];
  std::atomic<uint64_t> stamp;  // written last, with release
};

// What a rank says about one call. Calls take turns between two rounds: while a slow member still
// reads call s, its peers may announce call s + 1 but, for want of its arrival, not s + 2.
struct Round {
  static constexpr uint64_t kLines = 19;  // 1064 bytes

  Arrival arrival;
  StampedLine lines[kLines];
  alignas(kCacheLine) std::byte eager[Meeting::kEagerBytes];
  alignas(kCacheLine) Request request;
};

// One call of a sender that runs ahead (sender_ring.h): its data, here or, when they are longer, in
// the eager bytes of its rounds.
struct alignas(2 * kCacheLine) RingCell {
  static constexpr uint64_t kBytes = 2 * kCacheLine - sizeof(uint64_t);

  std::atomic<uint64_t> sequence;  // written last, with release
  std::byte data[kBytes];
};

struct Slot {
  static constexpr uint64_t kRingCells = 16;

  Departure departure;
  alignas(kCacheLine) uint64_t base;  // published by the key
  Part part;                          // in the same line: no member reads `base` then
  alignas(kCacheLine) GivingUp giving_up;
  Round rounds[2];  // call c uses rounds[c % 2]
  // Blocks of an AllToAll(V), whose calls end with a wait for all departures: one copy is enough.
  uint64_t send_bytes[Meeting::kMaxSlotRanks];
  uint64_t send_at[Meeting::kMaxSlotRanks];
  uint64_t recv_bytes[Meeting::kMaxSlotRanks];
  RingCell ring[kRingCells];
};
static_assert(sizeof(Arrival) == kCacheLine && sizeof(Departure) == kCacheLine);
static_assert(sizeof(StampedLine) == kCacheLine);
static_assert(sizeof(Round) == (1 + Round::kLines) * kCacheLine + 448 + Meeting::kEagerBytes);
static_assert(sizeof(RingCell) == 2 * kCacheLine);
// A line more, because cells are aligned to two.
static_assert(sizeof(Slot) ==
              4 * kCacheLine + 2 * sizeof(Round) + 3 * 4096 + Slot::kRingCells * sizeof(RingCell));
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct SlotDirectory {
  static constexpr int kSlots = 1024;
  std::atomic<uint64_t> keys[kSlots];
};

// The directory and slots in a rank's shared area.
inline SlotDirectory* DirectoryOf(std::byte* area) {
  return reinterpret_cast<SlotDirectory*>(area);
}
inline Slot* SlotOf(std::byte* area, int index) {
  return reinterpret_cast<Slot*>(area + sizeof(SlotDirectory)) + index;
}
static_assert(sizeof(SlotDirectory) % kCacheLine == 0);
static_assert(sizeof(SlotDirectory) + SlotDirectory::kSlots * sizeof(Slot) <=
              Board::kSharedAreaBytes);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_SLOT_H_
