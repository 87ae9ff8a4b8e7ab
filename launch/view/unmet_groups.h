// UnmetGroups: groups whose ranks have not met: their members are known, which is enough for shapes
// and plans, and nobody can communicate.
#ifndef NPUMESH_LAUNCH_VIEW_UNMET_GROUPS_H_
#define NPUMESH_LAUNCH_VIEW_UNMET_GROUPS_H_

#include <string>

#include "graph/ops/operator.h"
#include "graph/session/session.h"

namespace npumesh {

class UnmetGroups final : public GroupProvider {
 public:
  // `world_size` ranks are the members of groups that neither spell out their members nor stand in
  // `table`, which must outlive it. `rank` is the world rank in whose place we are; in a group
  // without it, that of the first member.
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
