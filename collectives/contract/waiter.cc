#include "collectives/contract/waiter.h"

#include "collectives/contract/hang_verdict.h"
#include "collectives/contract/request.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

// A wait suspects a standstill only after it has lasted this long.
constexpr auto kShortWait = std::chrono::seconds(1);

std::chrono::seconds Seconds(std::chrono::nanoseconds waited) {
  return std::chrono::duration_cast<std::chrono::seconds>(waited);
}

// Written whatever the level is: the user of a job that hangs must see it.
void Tell(std::string_view verdict, std::chrono::seconds limit, std::chrono::nanoseconds waited) {
  WriteLog(LogLevel::kWarning, {__FILE__, __LINE__},
           fmt::format("{}; {}", verdict, GivesUpText(limit, waited)));
}

}  // namespace

Deadline ExecDeadline(std::chrono::seconds limit) {
  return limit == kNoTimeout ? Deadline::Never() : Deadline::After(limit);
}

Waiter::Waiter(World& world, std::string group, const std::vector<int>& world_ranks)
    : world_(world), group_(std::move(group)), world_ranks_(world_ranks) {}

Status Waiter::Give(const std::vector<int>& missing, WaitState& state, std::string_view what,
                    std::chrono::seconds limit) const {
  NPUMESH_RETURN_IF_ERROR(world_.board().CheckPeers(missing));
  if (const Status over = watch_ ? watch_() : Status(); !over.ok()) {
    return Error(over.code(), "{}; {}", over.message(),
                 Verdict(Survey(world_, group_, what, missing, Seconds(state.waited()))));
  }
  NPUMESH_RETURN_IF_ERROR(GiveUpForEver(missing, state, what));
  const auto waited = state.waited();
  const bool too_long = limit != kNoTimeout && waited >= limit;
  if (!too_long && !state.notices.Due(waited)) return Status();
  const std::string verdict =
      Note(Survey(world_, group_, what, missing, Seconds(waited)), too_long);
  if (too_long) {
    return Error(Code::kTimeout,
                 "{} (group {}): rank(s) {} did not come within {} s; {}; look at what they do, or "
                 "raise the limit",
                 what, group_, RangeText(missing), limit.count(), verdict);
  }
  Tell(verdict, limit, waited);
  return Status();
}

std::string Waiter::Note(const WaitScene& scene, bool gave_up) const {
  const WaitNotice notice = NoticeOf(scene, gave_up);
  WaitNotices::Of(world_).Tell(notice);
  return notice.text;
}

Status Waiter::GiveUpForEver(const std::vector<int>& missing, WaitState& state,
                             std::string_view what) const {
  if (world_.env().deadlock == Env::Deadlock::kWait || state.waited() < kShortWait) return Status();
  if (!state.standstill.NeverEnds(missing)) return Status();
  const std::string verdict =
      Note(Survey(world_, group_, what, missing, Seconds(state.waited())), true);
  return Error(Code::kTimeout,
               "{} (group {}): {}; this can never end, so the wait is given up "
               "(NPUMESH_DEADLOCK=wait goes on waiting)",
               what, group_, verdict);
}

Status Waiter::Remark(WaitState& state, std::string_view what, std::chrono::seconds limit,
                      const std::vector<int>& absent) const {
  if (!absent.empty()) NPUMESH_RETURN_IF_ERROR(GiveUpForEver(absent, state, what));
  const auto waited = state.waited();
  if (!state.notices.Due(waited)) return Status();
  WaitScene scene = Survey(world_, group_, what, world_ranks_, Seconds(waited));
  scene.missing = LikelyMissing(scene);
  Tell(Note(scene, false), limit, waited);
  return Status();
}

namespace {

uint64_t FnvStep(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x100000001b3u;
}

}  // namespace

uint64_t GroupHash(const std::string& name, const std::vector<int>& world_ranks, uint64_t purpose) {
  uint64_t hash = purpose;
  for (const char c : name) hash = FnvStep(hash, static_cast<unsigned char>(c));
  hash = FnvStep(hash, 0x100);  // ends the name
  for (int r : world_ranks) hash = FnvStep(hash, static_cast<uint64_t>(r) + 1);
  return hash;
}

uint64_t NumberGroup(World& world, const std::string& name, const std::vector<int>& world_ranks,
                     uint64_t purpose) {
  const uint64_t hash = GroupHash(name, world_ranks, purpose);
  const uint64_t number = FnvStep(hash, world.NextOrdinal(hash) + 1);
  return number == 0 ? 1 : number;
}

void BeginGroupEra(World& world, const std::string& name, const std::vector<int>& world_ranks) {
  for (const uint64_t purpose : {kMeetingPurpose, kLogbookPurpose}) {
    world.BeginEra(GroupHash(name, world_ranks, purpose));
  }
}

uint64_t MeetingKey(World& world, const std::string& name, const std::vector<int>& world_ranks) {
  return NumberGroup(world, name, world_ranks, kMeetingPurpose);
}

}  // namespace npumesh
