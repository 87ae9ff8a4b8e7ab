#include "collectives/contract/waiter.h"

#include "collectives/contract/request.h"

namespace npumesh {

Waiter::Waiter(World& world, std::string group, const std::vector<int>& world_ranks)
    : world_(world), group_(std::move(group)), world_ranks_(world_ranks) {}

Status Waiter::Give(const std::vector<int>& missing, SteadyClock::time_point since,
                    std::string_view what, std::chrono::seconds limit, bool* said) const {
  NPUMESH_RETURN_IF_ERROR(world_.CheckPeers(missing));
  const auto waited = SteadyClock::now() - since;
  if (!*said && waited >= world_.env().soft_timeout) {
    *said = true;
    NPUMESH_WARNING("rank {} has waited {} s in {} (group {}) for rank(s) {}", world_.rank(),
                    std::chrono::duration_cast<std::chrono::seconds>(waited).count(), what, group_,
                    RangeText(missing));
  }
  if (limit != kNoTimeout && waited >= limit) {
    return Error(
        Code::kTimeout,
        "{} (group {}): rank(s) {} did not come within {} s; look at what they do, or raise "
        "the limit",
        what, group_, RangeText(missing), limit.count());
  }
  return Status();
}

uint64_t MeetingKey(World& world, const std::string& name, const std::vector<int>& world_ranks) {
  uint64_t key = 0xcbf29ce484222325u;
  const auto mix = [&key](uint64_t value) { key = (key ^ value) * 0x100000001b3u; };
  for (const char c : name) mix(static_cast<unsigned char>(c));
  mix(0x100);  // ends the name
  for (int r : world_ranks) mix(static_cast<uint64_t>(r) + 1);
  mix(world.NextOrdinal(key) + 1);
  return key == 0 ? 1 : key;
}

}  // namespace npumesh
