#include "launch/view/unmet_groups.h"

#include <algorithm>
#include <numeric>

namespace npumesh {

Result<Communicator*> UnmetGroups::Group(const std::string&) {
  return nullptr;
}

Result<GroupProvider::Members> UnmetGroups::MembersOf(const std::string& group) {
  constexpr std::string_view kRankList = "rank_list=";
  Members members;
  const size_t list = group.find(kRankList);
  if (const auto named = table_.find(group); named != table_.end()) {
    members.world_ranks = named->second;
  } else if (list != std::string::npos) {
    const std::string_view ranks = std::string_view(group).substr(list + kRankList.size());
    NPUMESH_ASSIGN_OR_RETURN(members.world_ranks, ParseRankList(ranks, group));
  } else {
    members.world_ranks.resize(static_cast<size_t>(world_size_));
    std::iota(members.world_ranks.begin(), members.world_ranks.end(), 0);
  }
  const auto own = std::ranges::find(members.world_ranks, rank_);
  members.rank =
      own == members.world_ranks.end() ? 0 : static_cast<int>(own - members.world_ranks.begin());
  return members;
}

}  // namespace npumesh
