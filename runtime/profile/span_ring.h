// SpanRing: spans of any thread, on their way to the one that empties it.
//
// A bounded queue of slots with sequence numbers (D. Vyukov's bounded queue, many writers and one
// reader): a writer claims a slot with one compare-and-swap and never waits; a full ring refuses.
//
// Thread-safety: Push from any thread, after the first Open has returned; Pop and Open from one.
#ifndef NPUMESH_RUNTIME_PROFILE_SPAN_RING_H_
#define NPUMESH_RUNTIME_PROFILE_SPAN_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/profile/span.h"

namespace npumesh {

class SpanRing {
 public:
  static constexpr uint64_t kSlots = uint64_t{1} << 17;

  // Takes the memory, 8 MiB. Again: drops what it holds.
  void Open();

  // False: the ring is full, or was never opened.
  bool Push(const Span& span) {
    if (slots_ == nullptr) return false;
    uint64_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[at % kSlots];
      const uint64_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (!head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
        slot.span = span;
        slot.turn.store(at + 1, std::memory_order_release);
        return true;
      }
      if (turn < at) return false;
      at = head_.load(std::memory_order_relaxed);
    }
  }

  // False: it is empty, or the next writer has not finished.
  bool Pop(Span& span) {
    Slot& slot = slots_[tail_ % kSlots];
    if (slot.turn.load(std::memory_order_acquire) != tail_ + 1) return false;
    span = slot.span;
    slot.turn.store(tail_ + kSlots, std::memory_order_release);
    ++tail_;
    return true;
  }

 private:
  // `turn` is n when the slot waits for the n-th span, n + 1 when it holds it.
  struct alignas(64) Slot {
    std::atomic<uint64_t> turn;
    Span span;
  };
  static_assert(sizeof(Slot) == 64);

  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) uint64_t tail_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_PROFILE_SPAN_RING_H_
