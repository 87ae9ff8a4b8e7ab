#include "runtime/device/page_rules.h"

#include <iterator>

namespace npumesh {

void PageRules::Set(const void* start, uint64_t bytes, PageRule rule) {
  const std::lock_guard lock(mutex_);
  const auto* const at = static_cast<const std::byte*>(start);
  if (rule.plain()) {
    ranges_.erase(at);
  } else {
    ranges_[at] = {bytes, rule};
  }
  any_.store(!ranges_.empty(), std::memory_order_relaxed);
}

PageRule PageRules::Strictest(const void* start, uint64_t bytes) const {
  const auto* const at = static_cast<const std::byte*>(start);
  const std::lock_guard lock(mutex_);
  auto range = ranges_.upper_bound(at);
  if (range != ranges_.begin()) --range;
  PageRule strictest;
  for (; range != ranges_.end() && range->first < at + bytes; ++range) {
    if (range->first + range->second.bytes <= at) continue;
    strictest.readable &= range->second.rule.readable;
    strictest.writable &= range->second.rule.writable;
    strictest.elsewhere |= range->second.rule.elsewhere;
  }
  return strictest;
}

}  // namespace npumesh
