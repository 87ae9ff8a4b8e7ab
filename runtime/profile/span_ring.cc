#include "runtime/profile/span_ring.h"

namespace npumesh {

void SpanRing::Open() {
  if (slots_ != nullptr) {
    Span dropped;
    while (Pop(dropped)) {
    }
    return;
  }
  slots_ = std::make_unique<Slot[]>(kSlots);
  for (uint64_t i = 0; i < kSlots; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
}

}  // namespace npumesh
