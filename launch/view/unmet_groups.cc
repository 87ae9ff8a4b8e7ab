#include "launch/view/unmet_groups.h"

#include <algorithm>

namespace npumesh {

Result<Communicator*> UnmetGroups::Group(const std::string&) {
  return nullptr;
}

Result<GroupProvider::Members> UnmetGroups::MembersOf(const std::string& group) {
  Members members;
  NPUMESH_ASSIGN_OR_RETURN(members.world_ranks, RanksOfGroup(group, table_, world_size_));
  members.rank = std::max(PlaceIn(members.world_ranks, rank_), 0);
  return members;
}

}  // namespace npumesh
