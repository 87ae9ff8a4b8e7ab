#include "graph/compare/rank_graphs.h"

#include <algorithm>
#include <numeric>

#include "graph/ops/collective.h"

namespace npumesh {

Result<std::vector<int>> MembersOfGroup(const std::string& group, const RankGraphs& graphs) {
  constexpr std::string_view kRankList = ";rank_list=";
  std::vector<int> members;
  const size_t list = group.rfind(kRankList);
  const auto named = graphs.groups.find(group);
  if (group.empty() || group == kWorldGroup) {
    members.resize(graphs.models.size());
    std::iota(members.begin(), members.end(), 0);
  } else if (group.starts_with("tag=") && list != std::string::npos) {
    NPUMESH_ASSIGN_OR_RETURN(members,
                             ParseRankList(std::string_view(group).substr(list + kRankList.size()),
                                           fmt::format("rank_list of group \"{}\"", group)));
  } else if (named != graphs.groups.end()) {
    members = named->second;
  } else {
    return Error(Code::kNotFound,
                 "group \"{}\" is unknown: comm_group of model_relation_config.json beside the "
                 "model does not list it",
                 group);
  }
  for (const int member : members) {
    if (member < graphs.size()) continue;
    return Error(Code::kInvalidArgument, "group \"{}\" has rank {} as a member, of {} ranks", group,
                 member, graphs.size());
  }
  return members;
}

}  // namespace npumesh
