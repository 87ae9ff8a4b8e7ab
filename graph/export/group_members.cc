#include "graph/export/group_members.h"

#include <algorithm>
#include <numeric>

namespace npumesh {

Result<Communicator*> GroupsOnPaper::Group(const std::string& group) {
  return Error(Code::kUnsupported, "group \"{}\": there are no ranks to communicate with", group);
}

Result<std::vector<int>> GroupsOnPaper::RanksOf(const std::string& group) const {
  constexpr std::string_view kRankList = ";rank_list=";
  if (group.empty() || group == kWorldGroup) {
    std::vector<int> everyone(static_cast<size_t>(world_size_));
    std::iota(everyone.begin(), everyone.end(), 0);
    return everyone;
  }
  const size_t list = group.rfind(kRankList);
  if (group.starts_with("tag=") && list != group.npos) {
    return ParseRankList(std::string_view(group).substr(list + kRankList.size()),
                         fmt::format("rank_list of group \"{}\"", group));
  }
  const auto named = table_.find(group);
  if (named != table_.end() && !named->second.empty()) return named->second;
  return Error(Code::kNotFound,
               "group \"{}\" is unknown: its name lists no ranks (tag=...;rank_list=0,1), and "
               "comm_group of model_relation_config.json does not have it",
               group);
}

Result<GroupProvider::Members> GroupsOnPaper::MembersOf(const std::string& group) {
  Members members;
  NPUMESH_ASSIGN_OR_RETURN(members.world_ranks, RanksOf(group));
  const int highest = *std::max_element(members.world_ranks.begin(), members.world_ranks.end());
  if (highest >= world_size_) {
    return Error(Code::kCorrupt, "group \"{}\" has rank {} as a member, but there are {} rank{}",
                 group, highest, world_size_, world_size_ == 1 ? "" : "s");
  }
  const auto me = std::find(members.world_ranks.begin(), members.world_ranks.end(), rank_);
  if (me != members.world_ranks.end()) {
    members.rank = static_cast<int>(me - members.world_ranks.begin());
  }
  return members;
}

}  // namespace npumesh
