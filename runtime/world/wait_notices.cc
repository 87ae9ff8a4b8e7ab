#include "runtime/world/wait_notices.h"

#include <memory>
#include <utility>

namespace npumesh {

WaitNotices& WaitNotices::Of(World& world) {
  return static_cast<WaitNotices&>(
      *world.Keep("wait notices", [] { return std::make_unique<WaitNotices>(); }));
}

void WaitNotices::Listen(Listener listener) {
  const std::lock_guard lock(mutex_);
  for (const WaitNotice& notice : std::exchange(told_, {})) listener(notice);
  listeners_.push_back(std::move(listener));
}

void WaitNotices::Tell(const WaitNotice& notice) {
  constexpr size_t kMostKept = 64;
  const std::lock_guard lock(mutex_);
  for (const Listener& listener : listeners_) listener(notice);
  if (listeners_.empty() && told_.size() < kMostKept) told_.push_back(notice);
}

}  // namespace npumesh
