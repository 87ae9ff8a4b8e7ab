#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/session/session.h"

namespace npumesh {
namespace {

constexpr std::string_view kTagPrefix = "tag=";
constexpr std::string_view kRankList = ";rank_list=";

std::vector<int> AllRanks(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Status CheckInWorld(const std::string& group, const std::vector<int>& ranks, int world_size) {
  const int highest = *std::max_element(ranks.begin(), ranks.end());
  if (highest < world_size) return Status();
  return Error(Code::kInvalidArgument,
               "group \"{}\" has rank {} as a member, but the world has {} rank{}; start at least "
               "{} ranks",
               group, highest, world_size, world_size == 1 ? "" : "s", highest + 1);
}

}  // namespace

GroupSet::GroupSet(World& world, DeviceMemory& memory, GroupTable table)
    : world_(world), memory_(memory), table_(std::move(table)) {}

GroupSet::~GroupSet() = default;

Result<std::vector<int>> GroupSet::RanksOf(const std::string& group) const {
  if (group.empty() || group == kWorldGroup) return AllRanks(world_.size());
  // A tag may contain anything, so the list is what follows the last mark.
  const size_t mark = group.rfind(kRankList);
  if (group.rfind(kTagPrefix, 0) == 0 && mark != std::string::npos) {
    const std::string_view list = std::string_view(group).substr(mark + kRankList.size());
    return ParseRankList(list, fmt::format("rank_list of group \"{}\"", group));
  }
  const auto known = table_.find(group);
  if (known != table_.end() && !known->second.empty()) return known->second;
  return Error(Code::kNotFound,
               "group \"{}\" is unknown: it is no list of ranks (tag=...;rank_list=0,1), and "
               "comm_group of model_relation_config.json, which would name its members, lists {} "
               "other group{}; put that file beside the model and add the group",
               group, table_.size(), table_.size() == 1 ? "" : "s");
}

Result<GroupProvider::Members> GroupSet::MembersOf(const std::string& group) {
  Members members;
  NPUMESH_ASSIGN_OR_RETURN(members.world_ranks, RanksOf(group));
  NPUMESH_RETURN_IF_ERROR(CheckInWorld(group, members.world_ranks, world_.size()));
  const auto me = std::find(members.world_ranks.begin(), members.world_ranks.end(), world_.rank());
  if (me != members.world_ranks.end()) {
    members.rank = static_cast<int>(me - members.world_ranks.begin());
  }
  return members;
}

Result<Communicator*> GroupSet::Group(const std::string& group) {
  const std::string name = group.empty() ? std::string(kWorldGroup) : group;
  const auto known = communicators_.find(name);
  if (known != communicators_.end()) return known->second.get();
  NPUMESH_ASSIGN_OR_RETURN(Members members, MembersOf(name));
  if (members.rank < 0) {
    return Error(Code::kInvalidArgument, "rank {} is not a member of group \"{}\", ranks {}",
                 world_.rank(), group, fmt::join(members.world_ranks, ","));
  }
  NPUMESH_ASSIGN_OR_RETURN(
      std::unique_ptr<Communicator> communicator,
      Communicator::Create(world_, memory_, name, std::move(members.world_ranks)));
  return communicators_.emplace(name, std::move(communicator)).first->second.get();
}

Status GroupSet::Prepare(const std::vector<std::string>& groups) {
  std::vector<std::pair<std::vector<int>, std::string>> ordered;
  for (const std::string& group : groups) {
    NPUMESH_ASSIGN_OR_RETURN(Members members, MembersOf(group));
    ordered.emplace_back(std::move(members.world_ranks), group);
  }
  std::sort(ordered.begin(), ordered.end());
  for (const auto& [ranks, group] : ordered) {
    NPUMESH_RETURN_IF_ERROR(Group(group).status());
  }
  return Status();
}

Communicator::Totals GroupSet::totals() const {
  Communicator::Totals sum;
  for (const auto& [name, communicator] : communicators_) {
    const Communicator::Totals totals = communicator->totals();
    sum.calls += totals.calls;
    sum.bytes += totals.bytes;
  }
  return sum;
}

}  // namespace npumesh
