#include "graph/export/group_members.h"

namespace npumesh {

Result<Communicator*> GroupsOnPaper::Group(const std::string& group) {
  return Error(Code::kUnsupported, "group \"{}\": there are no ranks to communicate with", group);
}

Result<GroupProvider::Members> GroupsOnPaper::MembersOf(const std::string& group) {
  Members members;
  NPUMESH_ASSIGN_OR_RETURN(members.world_ranks, RanksInWorld(group, table_, world_size_));
  members.rank = PlaceIn(members.world_ranks, rank_);
  return members;
}

}  // namespace npumesh
