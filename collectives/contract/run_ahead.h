// Run ahead: calls in which a sole sender runs ahead of those who receive from it.
//
// In a small broadcast only the root has data to give. When it waits for the others all
// the same, it does so for the contract only; ranks that share cores then pay a switch of core for
// each call. So once a group has made the same call kTrusted times in a row, comparing everything,
// the next equal ones are *led*: the sender leaves its data in a ring of cells and goes on, up to
// as many calls ahead as there are cells; the others wait for their cell only.
//
// The contract is checked in full, only later. Each member knows which calls may be led, because
// it has made the ones before. A member that makes another call instead arrives for it as always,
// and any member that sees it, at the latest when it waits, goes back to that call, arrives
// for it too, and all compare: the same text on all ranks, on the sender's and on those that had
// read their data already as the result of one of their next calls. Who goes back to which call is
// the sender's decision, which the others follow.
//
// Thread-safety: as the meeting.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_RUN_AHEAD_H_
#define NPUMESH_COLLECTIVES_CONTRACT_RUN_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/contract/request.h"
#include "collectives/contract/window_slots.h"

namespace npumesh {

// Equal calls in a row that all members have made, up to the last one.
class Streak {
 public:
  static constexpr uint64_t kTrusted = 4;

  // The call would be one more; `sole_sender` as in EagerData.
  bool Continues(const Announcement& announcement, int sole_sender) const;
  // Counts a call that was made.
  void Count(const Announcement& announcement, int sole_sender);

  // Enough of them: the next one is led, or else disputed.
  bool trusted() const { return count_ >= kTrusted; }
  // REQUIRES: trusted.
  size_t sender() const { return static_cast<size_t>(sender_); }
  const Announcement& announcement() const { return announcement_; }

 private:
  Announcement announcement_;  // of a call with a sole sender
  int sender_ = -1;
  uint64_t count_ = 0;
};

// The cells of a sender. Bytes of data are equal in all calls of a streak.
class SenderRing {
 public:
  explicit SenderRing(WindowSlots& slots) : slots_(slots) {}

  // How many calls a sender of `bytes`, at most Meeting::kEagerBytes, may be ahead.
  static uint64_t Depth(uint64_t bytes);
  // REQUIRES: all members have departed from call - Depth, and from the last call that was not led.
  void Write(uint64_t call, std::span<const std::byte> data);
  bool Written(size_t sender, uint64_t call) const;
  // The data of a call that has been written. Valid until this rank departs from the call.
  const std::byte* Data(size_t sender, uint64_t call, uint64_t bytes) const;

 private:
  static const RingCell& CellOf(const Slot& slot, uint64_t call) {
    return slot.ring[call % Slot::kRingCells];
  }
  // Of data that do not fit into a cell.
  static const std::byte* PlaceOf(const Slot& slot, uint64_t call, uint64_t bytes);

  WindowSlots& slots_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_RUN_AHEAD_H_
