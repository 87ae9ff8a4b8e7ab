#include "runtime/world/come_back.h"

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/notice_times.h"
#include "runtime/world/standstill.h"

namespace npumesh {
namespace {

constexpr auto kShortWait = std::chrono::seconds(1);

// One wait for the others.
class ComingBack {
 public:
  explicit ComingBack(World& world)
      : world_(world),
        limit_(world.env().exec_timeout),
        standstill_(world),
        notices_(world.env().soft_timeout) {}

  Status Await() {
    const Setbacks& setbacks = world_.board().setbacks();
    return WaitUntil(
        world_.wait_policy(), [&] { return setbacks.Awaited().empty(); },
        [&] { return Watch(setbacks.Awaited()); });
  }

 private:
  Status Watch(const std::vector<int>& awaited) {
    if (awaited.empty()) return Status();
    for (const int rank : awaited) {
      NPUMESH_RETURN_IF_ERROR(world_.board().CheckLost(rank).WithContext(Where()));
      if (!world_.board().Look(rank).leaving || !Waits(rank)) continue;
      return Error(Code::kPeerLost, "{}: rank {} has ended its work without it", Where(), rank);
    }
    const auto waited = SteadyClock::now() - since_;
    const bool fails = world_.env().deadlock == Env::Deadlock::kFail && waited >= kShortWait;
    const bool never = fails && standstill_.NeverEnds(awaited);
    if (never || (limit_ != kNoTimeout && waited >= limit_)) {
      return Error(Code::kTimeout, "{}: rank(s) {} {}", Where(), RangeText(awaited),
                   never ? "wait elsewhere, so this can never end"
                         : fmt::format("did not fail in it within {} s", limit_.count()));
    }
    if (!notices_.Due(waited)) return Status();
    WriteLog(LogLevel::kWarning, {__FILE__, __LINE__},
             fmt::format("{}: waited {} s for rank(s) {}; {}", Where(),
                         std::chrono::floor<std::chrono::seconds>(waited).count(),
                         RangeText(awaited), GivesUpText(limit_, waited)));
    return Status();
  }

  // It may have said so just before it ended.
  bool Waits(int rank) const {
    const std::vector<int> awaited = world_.board().setbacks().Awaited();
    return std::find(awaited.begin(), awaited.end(), rank) != awaited.end();
  }

  static std::string Where() { return "going on after a call that failed on this rank"; }

  World& world_;
  const std::chrono::seconds limit_;
  const SteadyClock::time_point since_ = SteadyClock::now();
  LongWait standstill_;
  NoticeTimes notices_;
};

}  // namespace

Status ComeBack(World& world) {
  Setbacks& setbacks = world.board().setbacks();
  if (!setbacks.lasting()) return Status();
  const std::lock_guard turn(setbacks.turn());
  if (!setbacks.lasting()) return Status();
  Status status = ComingBack(world).Await();
  if (status.ok()) status = setbacks.End();
  if (!status.ok()) world.board().PublishFailure(status);
  return status;
}

bool FailTogether(World& world, const Status& status, const std::vector<CommonCall>& calls) {
  Board& board = world.board();
  if (!ComeBack(world).ok()) return false;
  const bool lost = std::any_of(calls.begin(), calls.end(), [&](const CommonCall& call) {
    return !board.CheckLost(call.world_rank).ok();
  });
  if (!lost && board.setbacks().Publish(status, calls)) return true;
  board.PublishFailure(status);
  return false;
}

}  // namespace npumesh
