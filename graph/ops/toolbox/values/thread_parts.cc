#include "graph/ops/toolbox/values/thread_parts.h"

#include <atomic>

namespace npumesh {
namespace {

// ThreadSanitizer does not know OpenMP's library, so the order that its fork and join make is told
// to it by two atomics. Functions of their own, because RunParts is not instrumented. They cost
// some nanoseconds, a region of OpenMP a microsecond.
[[gnu::noinline]] void SayBefore(std::atomic<int>& order) {
  order.fetch_add(1, std::memory_order_release);
}
[[gnu::noinline]] void SayAfter(const std::atomic<int>& order) {
  (void)order.load(std::memory_order_acquire);
}

// 15 to 50 us. A region of OpenMP takes 1 us while its threads still wait for work, and some 10 us
// when they sleep.
std::atomic<double> least_work{1 << 19};

}  // namespace

int WorthThreads(double work, int threads) {
  return work < least_work.load(std::memory_order_relaxed) ? 1 : threads;
}

void SetWorthThreads(double work) {
  least_work.store(work, std::memory_order_relaxed);
}

[[gnu::no_sanitize("thread")]] void RunParts(int parts, void (*work)(const void* context, int part),
                                             const void* context) {
  if (parts == 1) return work(context, 0);
  std::atomic<int> fork{0}, join{0};
  SayBefore(fork);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) {
    SayAfter(fork);
    work(context, part);
    SayBefore(join);
  }
  SayAfter(join);
}

}  // namespace npumesh
