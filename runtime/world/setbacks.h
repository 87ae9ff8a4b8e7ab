// Setbacks: failures after which ranks go on together.
//
// A rank that fails in a call before it has met others there says so, with the reason and with the
// ranks that it would have met. Those of them that wait for it fail in the same call with its
// reason, and say so as well; those that fail by themselves do the same. So the call has failed on
// all of them, nothing of it is under way, and each goes on after ComeBack (come_back.h), in which
// it waits until the others are as far.
//
// For each other rank a rank counts the setbacks that concern both, and keeps a mark of the last
// two: a number of the call, equal on both. Two ranks whose marks differ have failed in different
// calls and cannot go on together. Two are enough, because the next setback comes only after the
// others have said theirs.
//
// Thread-safety: any thread may call everything.
#ifndef NPUMESH_RUNTIME_WORLD_SETBACKS_H_
#define NPUMESH_RUNTIME_WORLD_SETBACKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/world/transport.h"

namespace npumesh {

// A call that this rank has in common with another one.
struct CommonCall {
  int world_rank = 0;
  uint64_t mark = 0;  // equal on both ranks, another one for each call
};

class Setbacks {
 public:
  // What a world of `ranks` ranks needs of the memory of each rank: a multiple of a page.
  static uint64_t BytesFor(int ranks);

  // `segment` has BytesFor(transport.size()) zeros at `offset` of each part. Both must outlive it.
  Setbacks(const Transport& transport, const NodeSegment& segment, uint64_t offset);

  // This rank has failed in these calls before it met anyone there. False, and nothing is said:
  // its setback before still lasts, or a rank is on another node and would not see this one.
  bool Publish(const Status& status, const std::vector<CommonCall>& calls);

  // Whether a setback of this rank lasts. Costs one load of memory that no other rank writes.
  bool lasting() const { return lasting_.load(std::memory_order_acquire); }

  // kPeerLost with the reason while a setback of `world_rank` that concerns this rank lasts; OK
  // after both have come back from it, and for ranks of other nodes.
  Status Of(int world_rank) const;

  // The ranks that have not said yet that they fail in the call of this rank's lasting setback.
  std::vector<int> Awaited() const;

  // Ends this rank's setback and those of the others that belong to it. kMismatch when one of them
  // failed in another call; the setback lasts then. REQUIRES: Awaited() is empty.
  Status End();

  // For those that wait until it can be ended.
  std::mutex& turn() { return turn_; }

 private:
  struct Page;
  struct Mark;
  Page* page(int world_rank) const;
  // What `of` says for `reader`.
  Mark& mark(int of, int reader) const;

  const Transport& transport_;
  const NodeSegment& segment_;
  const uint64_t offset_;
  std::mutex turn_;
  mutable std::mutex mutex_;  // guards calls_ and what this rank writes
  std::vector<CommonCall> calls_;
  std::atomic<bool> lasting_{false};
  std::unique_ptr<std::atomic<uint64_t>[]> over_;  // by world rank: setbacks that are over
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_SETBACKS_H_
