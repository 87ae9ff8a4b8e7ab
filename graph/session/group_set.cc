#include "graph/session/group_set.h"

#include <fmt/ranges.h>

#include <utility>

#include "collectives/contract/waiter.h"

namespace npumesh {

GroupSet::GroupSet(World& world, DeviceMemory& memory, GroupTable table)
    : world_(world), memory_(memory), table_(std::move(table)) {}

GroupSet::~GroupSet() = default;

Result<GroupProvider::Members> GroupSet::MembersOf(const std::string& group) {
  Members members;
  NPUMESH_ASSIGN_OR_RETURN(members.world_ranks, RanksInWorld(group, table_, world_.size()));
  members.rank = PlaceIn(members.world_ranks, world_.rank());
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
  CommunicatorOptions options;
  options.meets_late = true;
  NPUMESH_ASSIGN_OR_RETURN(
      std::unique_ptr<Communicator> communicator,
      Communicator::Create(world_, memory_, name, std::move(members.world_ranks), options));
  return communicators_.emplace(name, std::move(communicator)).first->second.get();
}

void GroupSet::MeetAnew(const std::vector<std::string>& groups) {
  for (const std::string& group : groups) {
    const std::string name = group.empty() ? std::string(kWorldGroup) : group;
    const Result<Members> members = MembersOf(name);
    if (members.ok()) BeginGroupEra(world_, name, members->world_ranks);
  }
  for (const auto& [name, communicator] : communicators_) communicator->MeetAnew();
}

Communicator::Totals GroupSet::totals() const {
  Communicator::Totals sum;
  for (const auto& [name, communicator] : communicators_) {
    const Communicator::Totals totals = communicator->totals();
    sum.calls += totals.calls;
    sum.bytes += totals.bytes;
    sum.torn += totals.torn;
  }
  return sum;
}

}  // namespace npumesh
