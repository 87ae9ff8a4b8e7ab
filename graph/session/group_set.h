// GroupSet: the communicators of one rank, by the names of groups in graphs.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_SESSION_GROUP_SET_H_
#define NPUMESH_GRAPH_SESSION_GROUP_SET_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/group_names.h"
#include "graph/ops/core/operator.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {

// Errors as RanksInWorld.
class GroupSet final : public GroupProvider {
 public:
  // `world` and `memory` must outlive it.
  GroupSet(World& world, DeviceMemory& memory, GroupTable table);
  ~GroupSet() override;
  // Local: the members meet in the first collective of the group (communicator.h), so a rank waits
  // for the others only where its graph says so. kInvalidArgument when this rank is no member.
  Result<Communicator*> Group(const std::string& group) override;
  Result<Members> MembersOf(const std::string& group) override;
  // The members of these groups have failed together in a call of this rank's session: the groups
  // are made anew (Communicator::MeetAnew, BeginGroupEra). Names that mean no group count nothing.
  void MeetAnew(const std::vector<std::string>& groups);
  // Sum over all communicators.
  Communicator::Totals totals() const;

 private:
  World& world_;
  DeviceMemory& memory_;
  GroupTable table_;
  std::map<std::string, std::unique_ptr<Communicator>> communicators_;  // by group
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_GROUP_SET_H_
