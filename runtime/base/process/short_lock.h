// ShortLock: a mutex for sections of a few stores, which are seldom contended. Giving it back is a
// plain store, so it costs half of what a std::mutex costs; so no thread is woken: who has to
// wait looks again, first at once, then after naps, so that the holder gets a core.
//
// Thread-safety: all members may be called from any thread. Works with std::lock_guard,
// std::unique_lock and std::condition_variable_any.
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_SHORT_LOCK_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_SHORT_LOCK_H_

#include <atomic>

#include "runtime/base/process/wait.h"

namespace npumesh {

class ShortLock {
 public:
  void lock() {
    if (held_.exchange(true, std::memory_order_acquire)) LockSlowly();
  }
  bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  [[gnu::cold]] void LockSlowly() {
    constexpr int kSpins = 256;
    constexpr timespec kNap{0, 20'000};
    for (int i = 0;; ++i) {
      if (!held_.load(std::memory_order_relaxed) && try_lock()) return;
      if (i < kSpins) {
        CpuRelax();
      } else {
        nanosleep(&kNap, nullptr);
      }
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_SHORT_LOCK_H_
