// UnmetGroups: groups whose ranks have not met: their members are known, which is enough for shapes
// and plans, and nobody can communicate.
#ifndef NPUMESH_LAUNCH_VIEW_UNMET_GROUPS_H_
#define NPUMESH_LAUNCH_VIEW_UNMET_GROUPS_H_

#include <string>

#include "collectives/group_names.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

class UnmetGroups final : public GroupProvider {
 public:
  // `table` must outlive it. `rank` is the world rank in whose place we are; in a group without it,
  // that of the first member. Members may be outside of the world: nobody knows yet how many ranks
  // will run.
  UnmetGroups(const GroupTable& table, int world_size, int rank)
      : table_(table), world_size_(world_size), rank_(rank) {}

  // Null: there are no ranks.
  Result<Communicator*> Group(const std::string& group) override;
  Result<Members> MembersOf(const std::string& group) override;

 private:
  const GroupTable& table_;
  int world_size_;
  int rank_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_UNMET_GROUPS_H_
