// SharedParts: members that share a processor run each other's parts of a call.
//
// A call in which members touch each other's buffers meets twice: when all have come, and when all
// are done. With more ranks than processors each meeting takes a switch from every rank of a
// processor to the next. But when all have come, the member that runs can reach all that the others
// of its processor need. So it runs their parts as well, and they find them done when they run
// next: as many switches as one meeting takes (docs/algorithms.md has the figures).
//
// Each part is run once: by the rank that takes it first in its member's slot (Slot::part). A
// member helps only after it has taken its own part, and departs last. So a member that is lost
// while it runs the part of another is missed, too, by all who wait.
//
// Thread-safety: one thread of a rank uses an object at a time.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_SHARED_PARTS_H_
#define NPUMESH_COLLECTIVES_CONTRACT_SHARED_PARTS_H_

#include <cstddef>
#include <cstdint>

#include "collectives/contract/window_slots.h"
#include "collectives/contract/window_wait.h"

namespace npumesh {

class SharedParts {
 public:
  // Both must outlive the object.
  SharedParts(WindowSlots& slots, const WindowWait& wait) : slots_(slots), wait_(wait) {}

  // All have arrived for `call`, which no member has left.
  void Begin(uint64_t call) { call_ = call; }

  // ---- REQUIRES: Begin ----

  // This rank takes the part of member i; false: another has it.
  bool Take(size_t i) { return slots_.TakePart(i, call_); }
  // What this rank has done of the part of member i, which it took, stands before it.
  void End(size_t i) { slots_.EndPart(i, call_); }
  // Member i was on this rank's processor when it arrived, so it hardly runs now.
  bool IsNeighbour(size_t i) const {
    return i != slots_.rank() && slots_.CpuAtArrival(i, call_) == sched_getcpu();
  }
  // The part of member i is done. The own one was run by a member that is waited for.
  bool IsDone(size_t i) const {
    return i == slots_.rank() || slots_.Departed(i, call_) || slots_.PartEnded(i, call_);
  }
  // Waits until the parts of all are done. REQUIRES: this rank has departed.
  Status Await() const {
    return wait_.ForAll([this](size_t i) { return IsDone(i); },
                        [this](size_t i) { return slots_.CpuAtArrival(i, call_); });
  }

 private:
  WindowSlots& slots_;
  const WindowWait& wait_;
  uint64_t call_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_SHARED_PARTS_H_
