#include "graph/session/offline_groups.h"

#include <algorithm>

namespace npumesh {

Result<Communicator*> OfflineGroups::Group(const std::string&) {
  return nullptr;
}

Result<GroupProvider::Members> OfflineGroups::MembersOf(const std::string& group) {
  Members members;
  NPUMESH_ASSIGN_OR_RETURN(members.world_ranks, known_ ? RanksInWorld(group, table_, world_size_)
                                                       : RanksOfGroup(group, table_, world_size_));
  members.rank = PlaceIn(members.world_ranks, rank_);
  if (!known_) members.rank = std::max(members.rank, 0);
  return members;
}

}  // namespace npumesh
