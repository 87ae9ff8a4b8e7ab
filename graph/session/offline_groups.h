// OfflineGroups: the groups of a graph where no ranks run. Their members are known, which is enough
// for types, plans and checks; they cannot communicate.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_SESSION_OFFLINE_GROUPS_H_
#define NPUMESH_GRAPH_SESSION_OFFLINE_GROUPS_H_

#include <string>

#include "collectives/group_names.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

class OfflineGroups final : public GroupProvider {
 public:
  // As `rank` of a world of `world_size` sees them, that is as its GroupSet would: a member outside
  // of the world is an error, and a rank may be no member (-1). `table` must outlive it.
  static OfflineGroups InWorld(const GroupTable& table, int rank, int world_size) {
    return {table, rank, world_size, /*known=*/true};
  }
  // The same where it is not yet known how many ranks will run, so only the world group has
  // `world_size` members: those of others may be outside of it, and in a group without `rank` we
  // take the place of the first member. `table` must outlive it.
  static OfflineGroups BeforeWorld(const GroupTable& table, int rank, int world_size) {
    return {table, rank, world_size, /*known=*/false};
  }

  // Null: there are no ranks.
  Result<Communicator*> Group(const std::string& group) override;
  // Errors as RanksInWorld or, before there is a world, as RanksOfGroup.
  Result<Members> MembersOf(const std::string& group) override;

 private:
  OfflineGroups(const GroupTable& table, int rank, int world_size, bool known)
      : table_(table), rank_(rank), world_size_(world_size), known_(known) {}

  const GroupTable& table_;
  int rank_;
  int world_size_;
  bool known_;  // the world
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_OFFLINE_GROUPS_H_
