// Position: what a rank is doing in one of its groups, published for those who wait for it.
//
// A rank has one line on the board for each group, because several threads may be in collectives of
// different groups at once. A line has one writer, the thread that is in the group's collective,
// and any number of readers; it is written with a handful of stores and never waited for.
#ifndef NPUMESH_RUNTIME_WORLD_POSITION_H_
#define NPUMESH_RUNTIME_WORLD_POSITION_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace npumesh {

// Position::kind of a Gathering; kinds of collectives are smaller.
inline constexpr uint32_t kGatheringKind = 255;

enum class Phase : uint32_t {
  kFree = 0,       // no thread has this line
  kCreating = 1,   // waits for the members of a new group
  kOutside = 2,    // in none of the group's collectives; `call` is the last one
  kArriving = 3,   // waits until all have entered the call
  kRunning = 4,    // all have entered
  kDeparting = 5,  // has done its part, waits until all have
  kBroken = 6,     // has given the call up with an error; the group is of no use any more
  kClosed = 7,     // has left the group; the line may be claimed again
};

// One line as a reader sees it.
struct Position {
  uint64_t group = 0;  // number of the group, equal on its members; never 0
  uint64_t call = 0;   // of the group, from 1; 0: none yet
  uint32_t kind = 0;   // of the collective, as the floor above numbers them
  Phase phase = Phase::kFree;
  int64_t since_ns = 0;    // CLOCK_MONOTONIC: when the call was entered, or left
  std::string group_name;  // both names are cut to fit
  std::string node;

  // Between entering and leaving a call, or creating the group.
  bool active() const {
    return phase == Phase::kCreating || phase == Phase::kArriving || phase == Phase::kRunning ||
           phase == Phase::kDeparting;
  }
};

// One line in shared memory: a sequence lock around relaxed words. The words are stored with
// release and loaded with acquire instead of fences, which is the same code on x86 and lets
// ThreadSanitizer see the order.
class alignas(64) PositionLine {
 public:
  static constexpr size_t kGroupWords = 12;  // holds the names of groups made by root info
  static constexpr size_t kNodeWords = 7;

  // Takes a free or closed line; false when another thread has it.
  bool Claim();
  void Open(uint64_t group, std::string_view group_name, int64_t now_ns);
  void Enter(uint64_t call, uint32_t kind, std::string_view node, int64_t now_ns);
  // Another call that differs from the last one only in its number.
  void EnterAgain(uint64_t call, int64_t now_ns);
  void Move(Phase phase) { phase_.store(static_cast<uint32_t>(phase), std::memory_order_release); }
  void Leave(int64_t now_ns, Phase phase = Phase::kOutside);
  void Close(int64_t now_ns);

  // Empty for a line that is not open, and for one that is written all the time.
  std::optional<Position> Read() const;

 private:
  void Begin();
  void End();

  std::atomic<uint64_t> version_;  // odd while written
  std::atomic<uint64_t> group_;
  std::atomic<uint64_t> call_;
  std::atomic<int64_t> since_ns_;
  std::atomic<uint32_t> kind_;
  std::atomic<uint32_t> phase_;
  std::array<std::atomic<uint64_t>, kNodeWords> node_;
  // Last, because calls do not write it.
  std::array<std::atomic<uint64_t>, kGroupWords> group_name_;
};
static_assert(sizeof(PositionLine) == 192);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_POSITION_H_
