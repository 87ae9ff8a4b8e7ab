// WaitNotices: what the waits of a rank have said aloud.
//
// A wait that grows long warns, and one that is given up fails; both know the ranks that they wait
// for and often why those do not come. What keeps a record of the job listens here.
//
// Thread-safety: any thread may call everything.
#ifndef NPUMESH_RUNTIME_WORLD_WAIT_NOTICES_H_
#define NPUMESH_RUNTIME_WORLD_WAIT_NOTICES_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/world/world.h"

namespace npumesh {

// Why the ranks of a notice do not come, the less certain first.
enum class WaitReason : uint8_t {
  kLate = 1,     // they have not come yet; nothing more is known
  kEnded = 2,    // they have ended their work
  kStopped = 3,  // their processes are stopped
  kCircle = 4,   // they and the waiting rank wait for each other
};
std::string_view Name(WaitReason reason);  // "late", "ended", "stopped", "circle"

struct WaitNotice {
  bool gave_up = false;  // the wait has failed; else it goes on
  WaitReason reason = WaitReason::kLate;
  std::vector<int> ranks;  // world ranks that explain the wait, ascending
  uint64_t group = 0;      // as Position::group; 0: a wait outside of groups
  uint64_t call = 0;       // of the group
  std::chrono::seconds waited{};
  std::string text;  // what was written
};

class WaitNotices final : public WorldCompanion {
 public:
  using Listener = std::function<void(const WaitNotice&)>;

  // Those of this world.
  static WaitNotices& Of(World& world);

  // `listener` gets every notice, also those that were told before, for as long as the world lasts.
  void Listen(Listener listener);
  void Tell(const WaitNotice& notice);

 private:
  std::mutex mutex_;
  std::vector<Listener> listeners_;
  std::vector<WaitNotice> told_;  // the first ones, until there is a listener
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_WAIT_NOTICES_H_
