#include "collectives/hccl/comm/memory_ranges.h"

#include <algorithm>

namespace npumesh {
namespace {

uintptr_t AddressOf(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

// The span that shares a byte with [begin, begin + bytes); null when none does.
template <typename Spans>
const typename Spans::value_type* Overlapped(const Spans& spans, uintptr_t begin, uint64_t bytes) {
  const auto found = std::find_if(spans.begin(), spans.end(), [&](const auto& span) {
    return begin < span.first + span.second && span.first < begin + bytes;
  });
  return found == spans.end() ? nullptr : &*found;
}

Verdict CheckSpan(const void* begin, uint64_t bytes) {
  if (bytes != 0 && bytes <= UINTPTR_MAX - AddressOf(begin)) return {};
  return Refuse(HCCL_E_PARA, "EI0003: {} bytes at {} are no memory", bytes, begin);
}

}  // namespace

MemoryRanges& MemoryRanges::OfProcess() {
  static MemoryRanges* const ranges = new MemoryRanges;
  return *ranges;
}

Verdict MemoryRanges::Set(const void* base, uint64_t bytes) {
  NPUMESH_RETURN_IF_REFUSED(CheckSpan(base, bytes));
  std::lock_guard lock(mutex_);
  if (const auto* other = Overlapped(ranges_, AddressOf(base), bytes)) {
    return Refuse(HCCL_E_PARA, "EI0003: {} bytes at {} overlap the range at {:#x}", bytes, base,
                  other->first);
  }
  ranges_[AddressOf(base)] = bytes;
  return {};
}

Verdict MemoryRanges::Unset(const void* base) {
  std::lock_guard lock(mutex_);
  const auto range = ranges_.find(AddressOf(base));
  if (range == ranges_.end()) {
    return Refuse(HCCL_E_PARA, "EI0003: no range begins at {}", base);
  }
  if (const auto* block = Overlapped(active_, range->first, range->second)) {
    return Refuse(HCCL_E_PARA, "EI0003: the range at {} has an active block at {:#x}", base,
                  block->first);
  }
  ranges_.erase(range);
  return {};
}

Verdict MemoryRanges::Activate(const void* begin, uint64_t bytes) {
  NPUMESH_RETURN_IF_REFUSED(CheckSpan(begin, bytes));
  const uintptr_t at = AddressOf(begin);
  std::lock_guard lock(mutex_);
  const auto* range = Overlapped(ranges_, at, bytes);
  if (range == nullptr || at < range->first || at + bytes > range->first + range->second) {
    return Refuse(HCCL_E_PARA, "EI0003: {} bytes at {} do not lie in one memory range", bytes,
                  begin);
  }
  if (const auto* block = Overlapped(active_, at, bytes)) {
    return Refuse(HCCL_E_PARA, "EI0003: {} bytes at {} overlap the active block at {:#x}", bytes,
                  begin, block->first);
  }
  active_[at] = bytes;
  return {};
}

Verdict MemoryRanges::Deactivate(const void* begin) {
  std::lock_guard lock(mutex_);
  if (active_.erase(AddressOf(begin)) == 1) return {};
  return Refuse(HCCL_E_PARA, "EI0003: no active block begins at {}", begin);
}

}  // namespace npumesh
