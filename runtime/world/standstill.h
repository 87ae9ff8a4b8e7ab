// Standstill: the proof that a wait never ends.
//
// A suspicion is drawn from positions (contract/hang_verdict.h); here every step must be certain,
// also when a machine is so slow that a rank is not seen to move for minutes. Nothing is decided by
// time:
//
//   - A rank says that it stands still when each of its threads waits for other ranks, or for a
//     thread that does (runtime/base/process/thread_census.h), and for each wait whom it misses. It
//     looks anew again and again, and counts the rounds in which all of its waits have looked.
//   - A rank that waits reads what all ranks say, three times. Between two readings each rank that
//     counts has looked several times and has begun and ended no wait. So between the
//     second and the third none of them has moved, and each has missed whom it misses.
//   - Of these ranks those remain whose every wait misses one that remains or one that has ended
//     its work. None of them moves again, nor does a wait for one of them end.
//
// What cannot be seen (ranks of other nodes, unknown threads) counts as able to move.
#ifndef NPUMESH_RUNTIME_WORLD_STANDSTILL_H_
#define NPUMESH_RUNTIME_WORLD_STANDSTILL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/base/process/wait.h"
#include "runtime/world/world.h"

namespace npumesh {

// What one rank says at one moment.
struct RankStanding {
  int process = 0;
  bool ended = false;                // it has ended its work
  bool still = false;                // all of its threads wait
  uint64_t version = 0;              // another one whenever a wait begins or ends
  uint64_t rounds = 0;               // in which all of its waits have looked
  std::vector<std::set<int>> waits;  // world ranks that each wait misses
};
using Standings = std::map<int, RankStanding>;  // by world rank

// `now`, in which only those still stand still that have not moved since `before`, have looked in
// between, and share their process with no thread that has moved.
Standings Steady(const Standings& before, Standings now);

// Ranks that have ended and ranks that stand still and never move again.
std::set<int> NeverMoving(const Standings& standings);

// One wait of one thread, which says so to the other ranks when it lasts.
//
// Thread-safety: for the thread that waits.
class LongWait {
 public:
  // `world` must outlive it.
  explicit LongWait(World& world) : world_(world) {}
  ~LongWait() {
    if (ledger_) Leave();
  }
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  // To be called again and again while the wait lasts, with the world ranks that have just been
  // seen to be missing; each of them must come before the wait can end. True when it never ends,
  // and those who wait in the same circle have had the time to find that out, too.
  bool NeverEnds(const std::vector<int>& missing);

 private:
  class Ledger;

  void Leave();
  bool Advance(const std::set<int>& missing, const Standings& now);

  World& world_;
  Ledger* ledger_ = nullptr;  // once the wait is known to the others
  uint64_t number_ = 0;       // in the ledger
  SteadyClock::time_point next_look_{};
  std::unique_ptr<Standings> first_;  // readings
  std::unique_ptr<Standings> second_;
  int looks_ = 0;                         // since the first
  SteadyClock::time_point certain_at_{};  // when it was found out; else the epoch
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_STANDSTILL_H_
