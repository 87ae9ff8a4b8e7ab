#include "collectives/contract/meeting.h"

#include <algorithm>

#include "collectives/contract/message_meeting.h"
#include "collectives/contract/window_meeting.h"

namespace npumesh {

std::unique_ptr<Meeting> Meeting::Of(World& world, const std::string& name,
                                     const std::vector<int>& world_ranks) {
  const bool one_node = std::all_of(world_ranks.begin(), world_ranks.end(), [&](int r) {
    return world.node_of()[static_cast<size_t>(r)] == world.node();
  });
  if (one_node && world_ranks.size() <= kMaxSlotRanks) {
    return MakeWindowMeeting(world, name, world_ranks);
  }
  return MakeMessageMeeting(world, name, world_ranks);
}

}  // namespace npumesh
