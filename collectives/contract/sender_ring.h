// SenderRing: the cells in which a sender that runs ahead (run_ahead.h) leaves its data.
//
// A cell carries the number of its call, which the sender writes last. Data that are longer than a
// cell lie in the eager bytes of the sender's two rounds, which no call needs meanwhile; the longer
// they are, the fewer places there are, and the less far the sender may be ahead (Depth).
//
// Thread-safety: one thread of a rank uses an object at a time.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_SENDER_RING_H_
#define NPUMESH_COLLECTIVES_CONTRACT_SENDER_RING_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/contract/window_slots.h"

namespace npumesh {

// All data in the ring are equally long, until all members meet again.
class SenderRing {
 public:
  // `slots` must outlive the ring.
  explicit SenderRing(WindowSlots& slots) : slots_(slots) {}

  // How many calls a sender of `bytes`, at most Meeting::kEagerBytes, may be ahead.
  static uint64_t Depth(uint64_t bytes);

  // REQUIRES: all have departed from call - Depth, and from the last call in which all met.
  void Write(uint64_t call, std::span<const std::byte> data);

  bool Written(size_t sender, uint64_t call) const {
    const RingCell& cell = CellOf(slots_.of(sender), call);
    if (cell.sequence.load(std::memory_order_acquire) != slots_.Stamp(sender, call)) return false;
    // A member that lags behind has the next cell under way while it reads this one.
    __builtin_prefetch(&CellOf(slots_.of(sender), call + 1));
    return true;
  }

  // The data of a call that has been written. Valid until this rank departs from the call.
  const std::byte* Data(size_t sender, uint64_t call, uint64_t bytes) const;

 private:
  static const RingCell& CellOf(const Slot& slot, uint64_t call) {
    return slot.ring[call % Slot::kRingCells];
  }
  // The place of data that do not fit into a cell.
  static const std::byte* PlaceOf(const Slot& slot, uint64_t call, uint64_t bytes);

  WindowSlots& slots_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_SENDER_RING_H_
