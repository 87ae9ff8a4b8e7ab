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
  // Collective over the group when it is first asked for. kInvalidArgument when this rank is no
  // member.
  Result<Communicator*> Group(const std::string& group) override;
  // Collective over each of these groups: makes their communicators, ordered by members and name.
  // Ranks that share groups so meet in the same order whatever order their graphs name them in;
  // making them one by one, as kernels ask, could deadlock.
  Status Prepare(const std::vector<std::string>& groups);
  Result<Members> MembersOf(const std::string& group) override;
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
