#include "collectives/contract/window_slots.h"

#include <algorithm>

namespace npumesh {
namespace {

uint64_t Highest(const Slot& slot) {
  return std::max({slot.departure.sequence.load(std::memory_order_relaxed),
                   slot.rounds[0].arrival.sequence.load(std::memory_order_relaxed),
                   slot.rounds[1].arrival.sequence.load(std::memory_order_relaxed)});
}

// Nothing in the slot belongs to a call any more.
void MakeReady(Slot* slot) {
  slot->base = Highest(*slot) + 1;
  slot->departure.sequence.store(slot->base, std::memory_order_release);
  slot->part.taken.store(slot->base, std::memory_order_release);
  slot->part.ended.store(slot->base, std::memory_order_release);
  slot->giving_up.word.store(0, std::memory_order_release);
  for (Round& round : slot->rounds) {
    round.arrival.sequence.store(slot->base, std::memory_order_release);
    for (StampedLine& line : round.lines) line.stamp.store(0, std::memory_order_release);
  }
  for (RingCell& cell : slot->ring) cell.sequence.store(slot->base, std::memory_order_release);
}

// GivingUp::word = stamp of the call << 8 | code << 1 | decided.
constexpr int kCodeBits = 7;
constexpr uint64_t kCodeMask = (1u << kCodeBits) - 1;

}  // namespace

WindowSlots::WindowSlots(World& world, std::vector<int> world_ranks)
    : world_(world),
      world_ranks_(std::move(world_ranks)),
      slots_(world_ranks_.size(), nullptr),
      bases_(world_ranks_.size(), 0) {
  const auto me = std::find(world_ranks_.begin(), world_ranks_.end(), world.rank());
  rank_ = static_cast<size_t>(me - world_ranks_.begin());
}

void WindowSlots::Release(bool all_have_read) {
  if (index_ < 0) return;
  DirectoryOf(world_.board().shared_area(world_.rank()))
      ->keys[index_]
      .store(all_have_read ? 0 : kClosedKey);
  index_ = -1;
}

Status WindowSlots::Claim(uint64_t key, const std::string& group) {
  std::byte* area = world_.board().shared_area(world_.rank());
  SlotDirectory* directory = DirectoryOf(area);
  for (int i = 0; i < SlotDirectory::kSlots; ++i) {
    uint64_t free = 0;
    if (directory->keys[i].load(std::memory_order_relaxed) != 0) continue;
    // kClosedKey is no key that a peer looks for; the slot is made ready before it is announced.
    if (!directory->keys[i].compare_exchange_strong(free, kClosedKey)) continue;
    MakeReady(SlotOf(area, i));
    directory->keys[i].store(key, std::memory_order_release);
    key_ = key;
    index_ = i;
    return Status();
  }
  return Error(Code::kOutOfMemory, "group \"{}\": this rank is in {} groups already; destroy some",
               group, SlotDirectory::kSlots);
}

bool WindowSlots::Find(size_t i) {
  if (slots_[i] != nullptr) return true;
  std::byte* area = world_.board().shared_area(world_ranks_[i]);
  const SlotDirectory* directory = DirectoryOf(area);
  for (int s = 0; s < SlotDirectory::kSlots; ++s) {
    if (directory->keys[s].load(std::memory_order_acquire) != key_) continue;
    slots_[i] = SlotOf(area, s);
    bases_[i] = slots_[i]->base + 1;
    return true;
  }
  return false;
}

uint64_t WindowSlots::LastArrival(size_t i) const {
  uint64_t last = bases_[i];
  for (const Round& round : slots_[i]->rounds) {
    last = std::max(last, round.arrival.sequence.load(std::memory_order_acquire));
  }
  return last - bases_[i];
}

void WindowSlots::TakeBackArrivals() {
  for (Round& round : mine().rounds) {
    round.arrival.sequence.store(mine().base, std::memory_order_release);
  }
}

bool WindowSlots::AllDeparted(uint64_t call) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i] != nullptr && !Departed(i, call)) return false;
  }
  return true;
}

bool WindowSlots::TakePart(size_t i, uint64_t call) {
  std::atomic<uint64_t>& taken = slots_[i]->part.taken;
  const uint64_t stamp = Stamp(i, call);
  uint64_t before = taken.load(std::memory_order_relaxed);
  return before != stamp && taken.compare_exchange_strong(before, stamp);
}

// Every store that others may have seen before it is seen before it.
void WindowSlots::SetRetreat(const Retreat& retreat) {
  const uint64_t word = Stamp(rank_, retreat.call) << (kCodeBits + 1) |
                        static_cast<uint64_t>(retreat.code) << 1 | (retreat.decided ? 1 : 0);
  mine().giving_up.word.exchange(word, std::memory_order_seq_cst);
}

std::optional<WindowSlots::Retreat> WindowSlots::RetreatOf(size_t i) const {
  if (slots_[i] == nullptr) return std::nullopt;
  const uint64_t word = slots_[i]->giving_up.word.load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  return Retreat{(word >> (kCodeBits + 1)) - bases_[i], (word & 1) != 0,
                 static_cast<Code>(word >> 1 & kCodeMask)};
}

uint64_t WindowSlots::FirstDeparture() const {
  uint64_t first = ~uint64_t{0};
  for (size_t i = 0; i < slots_.size(); ++i) {
    const uint64_t last = slots_[i]->departure.sequence.load(std::memory_order_acquire);
    first = std::min(first, std::max(last, bases_[i]) - bases_[i]);
  }
  return first;
}

}  // namespace npumesh
