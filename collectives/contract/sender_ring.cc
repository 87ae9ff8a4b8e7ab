#include "collectives/contract/sender_ring.h"

#include <cstring>

namespace npumesh {
namespace {

// How many data of `bytes` the eager bytes of one round hold.
uint64_t PlacesInRound(uint64_t bytes) {
  constexpr uint64_t kMost = Slot::kRingCells / 2;
  return bytes <= Meeting::kEagerBytes / kMost ? kMost : Meeting::kEagerBytes / bytes;
}

}  // namespace

uint64_t SenderRing::Depth(uint64_t bytes) {
  return 2 * PlacesInRound(bytes);
}

void SenderRing::Write(uint64_t call, std::span<const std::byte> data) {
  Slot& mine = slots_.mine();
  RingCell& cell = mine.ring[call % Slot::kRingCells];
  std::byte* const place = data.size() <= RingCell::kBytes
                               ? cell.data
                               : const_cast<std::byte*>(PlaceOf(mine, call, data.size()));
  if (!data.empty()) std::memcpy(place, data.data(), data.size());
  cell.sequence.store(slots_.Stamp(slots_.rank(), call), std::memory_order_release);
}

const std::byte* SenderRing::Data(size_t sender, uint64_t call, uint64_t bytes) const {
  const Slot& slot = slots_.of(sender);
  return bytes <= RingCell::kBytes ? CellOf(slot, call).data : PlaceOf(slot, call, bytes);
}

const std::byte* SenderRing::PlaceOf(const Slot& slot, uint64_t call, uint64_t bytes) {
  const uint64_t places = PlacesInRound(bytes);
  const uint64_t place = call % (2 * places);
  const uint64_t width = Meeting::kEagerBytes / places / kCacheLine * kCacheLine;
  return slot.rounds[place / places].eager + place % places * width;
}

}  // namespace npumesh
