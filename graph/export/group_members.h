// Who the members of a graph's groups are, without ranks that could be asked.
#ifndef NPUMESH_GRAPH_EXPORT_GROUP_MEMBERS_H_
#define NPUMESH_GRAPH_EXPORT_GROUP_MEMBERS_H_

#include <string>

#include "collectives/group_names.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// Groups as GroupSet understands them, for shape inference and for checks; no communication.
// Errors of MembersOf as RanksInWorld.
class GroupsOnPaper final : public GroupProvider {
 public:
  // As `rank` of `world_size` sees them. `table` must outlive it.
  GroupsOnPaper(const GroupTable& table, int rank, int world_size)
      : table_(table), rank_(rank), world_size_(world_size) {}

  Result<Communicator*> Group(const std::string& group) override;
  Result<Members> MembersOf(const std::string& group) override;

 private:
  const GroupTable& table_;
  int rank_;
  int world_size_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_GROUP_MEMBERS_H_
