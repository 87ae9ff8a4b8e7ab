// Who the members of a group are, as the name of the group and the relation file of a package say.
// One reading for sessions, exports, comparisons and plans.
#ifndef NPUMESH_COLLECTIVES_GROUP_NAMES_H_
#define NPUMESH_COLLECTIVES_GROUP_NAMES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// Group name -> members in group order, from model_relation_config.json or from a caller.
using GroupTable = std::map<std::string, std::vector<int>>;

// "0, 1,2": ranks of a group. Errors (kCorrupt) begin with `what`: not a list of numbers, none at
// all, or one twice.
Result<std::vector<int>> ParseRankList(std::string_view text, std::string_view what);

// World ranks of the members of a group, in group order. The name is, in this order,
//   - empty or "hccl_world_group": all ranks;
//   - "tag=<tag>;rank_list=0,1": these, in this order. A tag may contain anything, so the list is
//     what follows the last ";rank_list=";
//   - a name of the table with members.
// Errors: kNotFound for a name that nothing explains, kCorrupt for a broken list; both name the
// group. Members may be outside of the world.
Result<std::vector<int>> RanksOfGroup(const std::string& group, const GroupTable& table,
                                      int world_size);

// The same; a member outside of the world is an error (kInvalidArgument).
Result<std::vector<int>> RanksInWorld(const std::string& group, const GroupTable& table,
                                      int world_size);

// The place of a world rank among the members; -1: it is not a member.
int PlaceIn(const std::vector<int>& members, int world_rank);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_GROUP_NAMES_H_
