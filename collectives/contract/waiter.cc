#include "collectives/contract/waiter.h"

#include "collectives/contract/hang_verdict.h"
#include "collectives/contract/request.h"

namespace npumesh {

Deadline ExecDeadline(std::chrono::seconds limit) {
  return limit == kNoTimeout ? Deadline::Never() : Deadline::After(limit);
}

Waiter::Waiter(World& world, std::string group, const std::vector<int>& world_ranks)
    : world_(world), group_(std::move(group)), world_ranks_(world_ranks) {}

Status Waiter::Give(const std::vector<int>& missing, SteadyClock::time_point since,
                    std::string_view what, std::chrono::seconds limit, bool* said) const {
  NPUMESH_RETURN_IF_ERROR(world_.CheckPeers(missing));
  const auto waited = SteadyClock::now() - since;
  const bool too_long = limit != kNoTimeout && waited >= limit;
  if (!too_long && (*said || waited < world_.env().soft_timeout)) return Status();
  const std::string verdict = Verdict(Survey(
      world_, group_, what, missing, std::chrono::duration_cast<std::chrono::seconds>(waited)));
  if (too_long) {
    return Error(Code::kTimeout,
                 "{} (group {}): rank(s) {} did not come within {} s; {}; look at what they do, or "
                 "raise the limit",
                 what, group_, RangeText(missing), limit.count(), verdict);
  }
  *said = true;
  // Written whatever the level is: who looks at a job that hangs must see it.
  WriteLog(LogLevel::kWarning, {__FILE__, __LINE__}, verdict);
  return Status();
}

void Waiter::Remark(SteadyClock::time_point since, std::string_view what, bool* said) const {
  const auto waited = SteadyClock::now() - since;
  if (*said || waited < world_.env().soft_timeout) return;
  *said = true;
  WaitScene scene = Survey(world_, group_, what, world_ranks_,
                           std::chrono::duration_cast<std::chrono::seconds>(waited));
  scene.missing = LikelyMissing(scene);
  WriteLog(LogLevel::kWarning, {__FILE__, __LINE__}, Verdict(scene));
}

namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  return (hash ^ value) * 0x100000001b3u;
}

}  // namespace

uint64_t GroupHash(const std::string& name, const std::vector<int>& world_ranks, uint64_t purpose) {
  uint64_t hash = purpose;
  for (const char c : name) hash = Mix(hash, static_cast<unsigned char>(c));
  hash = Mix(hash, 0x100);  // ends the name
  for (int r : world_ranks) hash = Mix(hash, static_cast<uint64_t>(r) + 1);
  return hash;
}

uint64_t NumberGroup(World& world, const std::string& name, const std::vector<int>& world_ranks,
                     uint64_t purpose) {
  const uint64_t hash = GroupHash(name, world_ranks, purpose);
  const uint64_t number = Mix(hash, world.NextOrdinal(hash) + 1);
  return number == 0 ? 1 : number;
}

uint64_t MeetingKey(World& world, const std::string& name, const std::vector<int>& world_ranks) {
  return NumberGroup(world, name, world_ranks, kMeetingPurpose);
}

}  // namespace npumesh
