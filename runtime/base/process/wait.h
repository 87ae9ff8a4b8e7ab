// Waiting, bounded and polite.
//
// Ranks outnumber cores: a waiter spins for a moment, and longer while those it waits for run on
// other cores, then yields its core, then sleeps for naps, short at first. A wait has a deadline
// and a `watch`, which is called every few milliseconds and may end the wait with an error (a dead
// peer, a soft-limit report).
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_WAIT_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_WAIT_H_

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

#include "runtime/base/status.h"

namespace npumesh {

using SteadyClock = std::chrono::steady_clock;

// A point in time after which waiting is an error; default: never.
struct Deadline {
  SteadyClock::time_point at = SteadyClock::time_point::max();
  // Called now and then, on the waiting thread, by those who wait for a message; its error ends the
  // wait. Null: nothing to do. Must outlive the wait.
  const std::function<Status()>* meanwhile = nullptr;

  static Deadline Never() { return {}; }
  static Deadline After(std::chrono::nanoseconds wait) { return {SteadyClock::now() + wait}; }
  bool expired() const { return at != SteadyClock::time_point::max() && SteadyClock::now() >= at; }
};

// Written in assembler because <immintrin.h> would cost every includer a third of a second to
// build.
inline void CpuRelax() {
#if defined(__x86_64__)
  asm volatile("pause");
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How long to insist before giving the core away. `ForCores` chooses by how crowded the node is.
struct WaitPolicy {
  int spins = 64;     // checks with a pause in between
  int yields = 4096;  // checks with sched_yield in between; after that naps
  // The first nap. Naps get longer with their number, up to a millisecond: in a wait of a second
  // the last one is a thousandth of it. 64 ranks that woke every 50 us would take more than a
  // processor from the one they wait for.
  int nap_ns = 50'000;
  int insists = 0;  // more spins, while those waited for are known to run on other cores
  // Time between two calls of the watch.
  std::chrono::milliseconds watch_every{50};

  // A yield of one of many waiters lasts until all others have had their turn, so fewer of them are
  // as long: 64 ranks on 2 cores would yield 4096 times for seconds before the first of them naps.
  static int YieldsFor(int ranks, int cores) {
    constexpr int kMost = 4096;
    constexpr int kLeast = 128;
    return ranks <= cores ? kMost : std::max(kLeast, kMost / ranks * std::max(cores, 1));
  }

  // `ranks` waiters share `cores` cores: when each has a core, spinning longer is cheaper than
  // a system call; otherwise the core is needed by the one that is waited for (one check instead of
  // 32: 3.7 us instead of 5.2 us for an AllReduce of 64 bytes, 4 ranks on 2 cores), unless that one
  // runs on another core (4.5 us instead of 15 us, the same beside other work).
  static WaitPolicy ForCores(int ranks, int cores) {
    WaitPolicy policy;
    policy.spins = ranks <= cores ? 4096 : 1;
    policy.insists = ranks <= cores ? 0 : 1024;
    policy.yields = YieldsFor(ranks, cores);
    return policy;
  }
};

// Nanoseconds of nap number `nap` of a wait, from 0.
inline int64_t NapNanoseconds(const WaitPolicy& policy, int64_t nap) {
  constexpr int64_t kLongest = 1'000'000;
  constexpr int64_t kNapsOfALength = 64;
  return std::min(std::max<int64_t>(kLongest, policy.nap_ns),
                  policy.nap_ns * (1 + nap / kNapsOfALength));
}

// Waits until `ready()` is true. `watch()` returns a Status; an error ends the wait with it.
// `elsewhere()`: those waited for run on other cores, so giving this one away helps none of them.
template <typename Ready, typename Watch, typename Elsewhere>
Status WaitUntil(const WaitPolicy& policy, Ready&& ready, Watch&& watch, Elsewhere&& elsewhere) {
  for (int i = 0; i < policy.spins; ++i) {
    if (ready()) return Status();
    CpuRelax();
  }
  for (int i = 0; i < policy.insists && elsewhere(); ++i) {
    CpuRelax();
    if (ready()) return Status();
  }
  auto next_watch = SteadyClock::now() + policy.watch_every;
  for (int64_t i = 0;; ++i) {
    if (ready()) return Status();
    if (i < policy.yields) {
      sched_yield();
    } else {
      const timespec nap{0, NapNanoseconds(policy, i - policy.yields)};
      nanosleep(&nap, nullptr);
    }
    if ((i & 15) != 0 && i < policy.yields) continue;
    const auto now = SteadyClock::now();
    if (now < next_watch) continue;
    next_watch = now + policy.watch_every;
    if (Status status = watch(); !status.ok()) return ready() ? Status() : status;
  }
}

template <typename Ready, typename Watch>
Status WaitUntil(const WaitPolicy& policy, Ready&& ready, Watch&& watch) {
  return WaitUntil(policy, ready, watch, [] { return false; });
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_WAIT_H_
