// WindowSlots: the slots by which the members of a group on one node meet, one owned by each.
//
// Calls are numbered by the meeting, from 0, the meeting itself; a slot counts on from what its
// last user has left there, so a new group never takes an old number for a number of this group.
//
// Thread-safety: one thread of a rank uses an object at a time; what other ranks write is atomic.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_WINDOW_SLOTS_H_
#define NPUMESH_COLLECTIVES_CONTRACT_WINDOW_SLOTS_H_

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/contract/slot.h"
#include "runtime/world/world.h"

namespace npumesh {

class WindowSlots {
 public:
  // `world` must outlive the slots.
  WindowSlots(World& world, std::vector<int> world_ranks);
  // Makes the own slot free for another group; closed until the job ends unless `all_have_read`.
  void Release(bool all_have_read);

  // Takes a slot of this rank and announces it under `key`. kOutOfMemory when none is left; `group`
  // is named there.
  Status Claim(uint64_t key, const std::string& group);
  // Looks for member i's slot under the same key; true when it has been found.
  bool Find(size_t i);

  size_t size() const { return slots_.size(); }
  size_t rank() const { return rank_; }  // of this member
  const std::vector<int>& world_ranks() const { return world_ranks_; }

  Slot& mine() { return *slots_[rank_]; }
  const Slot& of(size_t i) const { return *slots_[i]; }
  Round& my_round(uint64_t call) { return mine().rounds[call % 2]; }
  const Round& round(size_t i, uint64_t call) const { return slots_[i]->rounds[call % 2]; }

  // What stands in a slot for call `call` of its owner.
  uint64_t Stamp(size_t i, uint64_t call) const { return bases_[i] + call; }

  bool Arrived(size_t i, uint64_t call) const {
    return round(i, call).arrival.sequence.load(std::memory_order_acquire) == Stamp(i, call);
  }
  // The last call for which member i has arrived; 0: for none after the meeting.
  uint64_t LastArrival(size_t i) const;
  // Where member i was in call `call`, for which it has arrived.
  int CpuAtArrival(size_t i, uint64_t call) const {
    return round(i, call).arrival.cpu.load(std::memory_order_relaxed);
  }

  // From here on this rank has arrived nowhere.
  void TakeBackArrivals();

  bool Departed(size_t i, uint64_t call) const {
    return slots_[i]->departure.sequence.load(std::memory_order_acquire) >= Stamp(i, call);
  }
  // As far as their slots are known.
  bool AllDeparted(uint64_t call) const;
  // The last call from which all have departed; 0: from none after the meeting.
  uint64_t FirstDeparture() const;
  // Everything that this rank read and wrote for call `call` stands before it.
  void Depart(uint64_t call) {
    mine().departure.sequence.store(Stamp(rank_, call), std::memory_order_release);
  }

  // Takes the part of member i in call `call` (shared_parts.h); false: it is taken.
  bool TakePart(size_t i, uint64_t call);
  void EndPart(size_t i, uint64_t call) {
    slots_[i]->part.ended.store(Stamp(i, call), std::memory_order_release);
  }
  bool PartEnded(size_t i, uint64_t call) const {
    return slots_[i]->part.ended.load(std::memory_order_acquire) == Stamp(i, call);
  }

  // ---- giving up (window_meeting.h) ----

  // A call that a member gives up. `decided` is false while it still looks whether it may.
  struct Retreat {
    uint64_t call = 0;
    bool decided = false;
    Code code = Code::kOk;  // why
  };
  void SetRetreat(const Retreat& retreat);
  void TakeBackRetreat() { mine().giving_up.word.store(0, std::memory_order_release); }
  // Of member i; empty: it gives up none.
  std::optional<Retreat> RetreatOf(size_t i) const;
  bool AnyRetreat() const {
    uint64_t words = 0;
    for (const Slot* slot : slots_) words |= slot->giving_up.word.load(std::memory_order_acquire);
    return words != 0;
  }

  // Where member i was in the last call in which it followed a sender.
  int CpuOfFollower(size_t i) const {
    return slots_[i]->departure.cpu.load(std::memory_order_relaxed);
  }
  void TellCpuOfFollower() {
    mine().departure.cpu.store(sched_getcpu(), std::memory_order_relaxed);
  }

 private:
  World& world_;
  const std::vector<int> world_ranks_;
  size_t rank_ = 0;
  uint64_t key_ = 0;
  int index_ = -1;  // of the own slot in the directory
  std::vector<Slot*> slots_;
  std::vector<uint64_t> bases_;  // what stands in a slot for call 0
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_WINDOW_SLOTS_H_
