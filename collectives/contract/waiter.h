// Waiter: how a rank waits for the others of its group: past the soft limit it says who waits for
// whom, and again as time passes; it gives up, saying the same, when a peer is lost, when the wait
// certainly never ends, or past the hard limit.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_WAITER_H_
#define NPUMESH_COLLECTIVES_CONTRACT_WAITER_H_

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/process/wait.h"
#include "runtime/world/notice_times.h"
#include "runtime/world/standstill.h"
#include "runtime/world/world.h"

namespace npumesh {

struct WaitScene;

// For a wait inside a collective that begins now: `limit` from now; never for kNoTimeout.
Deadline ExecDeadline(std::chrono::seconds limit);

// What one wait remembers of what it has said.
class WaitState {
 public:
  explicit WaitState(World& world) : standstill(world), notices(world.env().soft_timeout) {}

  std::chrono::nanoseconds waited() const { return SteadyClock::now() - since; }

  const SteadyClock::time_point since = SteadyClock::now();
  LongWait standstill;
  NoticeTimes notices;
};

class Waiter {
 public:
  Waiter(World& world, std::string group, const std::vector<int>& world_ranks);

  // Waits until `here(i)` is true for every group rank i. `what()` says what is waited in, for
  // people; it is only asked when the wait grows long.
  // `cpu(i)`: the processor on which group rank i was seen last; -1: not known.
  template <typename What, typename Here, typename Cpu>
  Status ForAll(What what, std::chrono::seconds limit, Here here, Cpu cpu) const;

  // Asked while a wait of ForAll lasts; an error ends the wait.
  void set_watch(std::function<Status()> watch) { watch_ = std::move(watch); }

  // For a wait in which members cannot be seen coming, because they send messages; to be called now
  // and then while it lasts. Says, past the soft limit, who is likely to be missing. `absent`:
  // world ranks that certainly have not entered the call yet. An error ends the wait.
  Status Remark(WaitState& state, std::string_view what, std::chrono::seconds limit,
                const std::vector<int>& absent = {}) const;

 private:
  // Called while waiting; an error ends the wait.
  Status Give(const std::vector<int>& missing, WaitState& state, std::string_view what,
              std::chrono::seconds limit) const;
  // Tells the world's WaitNotices, and returns the verdict.
  std::string Note(const WaitScene& scene, bool gave_up) const;
  // kTimeout when the wait certainly never ends, and is to fail then.
  Status GiveUpForEver(const std::vector<int>& missing, WaitState& state,
                       std::string_view what) const;

  // Looks without a pause in between, before the real waiting begins: when every rank has a core,
  // the others are mostly a few hundred nanoseconds away (AllReduce of 64 bytes, 2 ranks: 0.95 of
  // the time with pauses from the start).
  int LooksAtFirst() const {
    constexpr int kMany = 200;
    return world_.wait_policy().spins > kMany ? kMany : 1;
  }

  World& world_;
  std::string group_;
  std::vector<int> world_ranks_;
  std::function<Status()> watch_;
};

template <typename What, typename Here, typename Cpu>
Status Waiter::ForAll(What what, std::chrono::seconds limit, Here here, Cpu cpu) const {
  const size_t count = world_ranks_.size();
  size_t next = 0;  // all before it are here
  const auto ready = [&] {
    while (next < count && here(next)) ++next;
    return next == count;
  };
  for (int i = 0; i < LooksAtFirst(); ++i) {
    if (ready()) return Status();
  }
  WaitState state(world_);
  const auto watch = [&]() -> Status {
    std::vector<int> missing;
    for (size_t i = next; i < count; ++i) {
      if (!here(i)) missing.push_back(world_ranks_[i]);
    }
    if (missing.empty()) return Status();
    return Give(missing, state, what(), limit);
  };
  const auto elsewhere = [&] {
    const int own = sched_getcpu();
    for (size_t i = next; i < count; ++i) {
      if (cpu(i) == own && !here(i)) return false;
    }
    return true;
  };
  return WaitUntil(world_.wait_policy(), ready, watch, elsewhere);
}

inline constexpr uint64_t kMeetingPurpose = 0xcbf29ce484222325u;
inline constexpr uint64_t kLogbookPurpose = 0x6c6f67626f6f6b00u;

// Equal on all members of a group; the same for groups of equal name and members. Numbers made for
// different purposes have nothing to do with each other. Local.
uint64_t GroupHash(const std::string& name, const std::vector<int>& world_ranks,
                   uint64_t purpose = kMeetingPurpose);

// The same, but counts groups of equal name and members: different for each, and equal on members
// who make them in the same order. Never 0.
uint64_t NumberGroup(World& world, const std::string& name, const std::vector<int>& world_ranks,
                     uint64_t purpose);

// After a call in which the members failed together: groups of this name and members are counted
// anew, also those that only some of the members had begun to make. Local.
void BeginGroupEra(World& world, const std::string& name, const std::vector<int>& world_ranks);

// The number under which the members of a group find each other; counts groups of equal name and
// members. Never 0.
uint64_t MeetingKey(World& world, const std::string& name, const std::vector<int>& world_ranks);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_WAITER_H_
