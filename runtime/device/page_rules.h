// PageRules: ranges of a device's memory that clients have mapped or protected by themselves, so
// that they are not like the rest of it.
//
// Thread-safety: all members may be called from any thread. Asking costs nothing while there is no
// rule.
#ifndef NPUMESH_RUNTIME_DEVICE_PAGE_RULES_H_
#define NPUMESH_RUNTIME_DEVICE_PAGE_RULES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace npumesh {

// What holds for all bytes of a range.
struct PageRule {
  bool readable = true;
  bool writable = true;
  bool elsewhere = false;  // other pages are mapped over it, which peers do not see there

  bool plain() const { return readable && writable && !elsewhere; }
};

class PageRules {
 public:
  // REQUIRES: the range is one that was set before, or overlaps none. A plain rule ends it.
  void Set(const void* start, uint64_t bytes, PageRule rule);
  // The strictest of what is set in the range.
  PageRule Of(const void* start, uint64_t bytes) const {
    return any_.load(std::memory_order_relaxed) ? Strictest(start, bytes) : PageRule();
  }

 private:
  struct Range {
    uint64_t bytes = 0;
    PageRule rule;
  };
  PageRule Strictest(const void* start, uint64_t bytes) const;

  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::map<const std::byte*, Range> ranges_;  // guarded by mutex_; by start
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_PAGE_RULES_H_
