#include "collectives/group_names.h"

#include <algorithm>
#include <limits>
#include <set>

#include "collectives/communicator.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

constexpr std::string_view kTagPrefix = "tag=";
constexpr std::string_view kRankList = ";rank_list=";

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::vector<int>> ParseRankList(std::string_view text, std::string_view what) {
  std::vector<int> ranks;
  std::set<int> seen;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view item = Trim(text.substr(begin, comma - begin));
    const Result<int64_t> rank = ParseInt(item, 0, std::numeric_limits<int32_t>::max(), what);
    if (!rank.ok()) return Error(Code::kCorrupt, "{}", rank.status().message());
    if (!seen.insert(static_cast<int>(*rank)).second) {
      return Error(Code::kCorrupt, "{}: rank {} is listed twice", what, *rank);
    }
    ranks.push_back(static_cast<int>(*rank));
    begin = comma + 1;
  }
  return ranks;
}

Result<std::vector<int>> RanksOfGroup(const std::string& group, const GroupTable& table,
                                      int world_size) {
  if (group.empty() || group == kWorldGroup) return AllRanks(world_size);
  const size_t mark = group.rfind(kRankList);
  if (group.starts_with(kTagPrefix) && mark != std::string::npos) {
    const std::string_view list = std::string_view(group).substr(mark + kRankList.size());
    return ParseRankList(list, fmt::format("rank_list of group \"{}\"", group));
  }
  const auto known = table.find(group);
  if (known != table.end() && !known->second.empty()) return known->second;
  return Error(Code::kNotFound,
               "group \"{}\" is unknown: it is no list of ranks (tag=...;rank_list=0,1), and "
               "comm_group of model_relation_config.json, which would name its members, lists {} "
               "other group{}; put that file beside the model and add the group",
               group, table.size(), table.size() == 1 ? "" : "s");
}

Result<std::vector<int>> RanksInWorld(const std::string& group, const GroupTable& table,
                                      int world_size) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int> ranks, RanksOfGroup(group, table, world_size));
  const int highest = ranks.empty() ? -1 : *std::max_element(ranks.begin(), ranks.end());
  if (highest < world_size) return ranks;
  return Error(Code::kInvalidArgument,
               "group \"{}\" has rank {} as a member, but the world has {} rank{}; start at least "
               "{} ranks",
               group, highest, world_size, world_size == 1 ? "" : "s", highest + 1);
}

int PlaceIn(const std::vector<int>& members, int world_rank) {
  const auto found = std::find(members.begin(), members.end(), world_rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

}  // namespace npumesh
