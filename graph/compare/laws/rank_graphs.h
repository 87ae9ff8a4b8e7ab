// RankGraphs: the graphs of all ranks of a job, side by side.
#ifndef NPUMESH_GRAPH_COMPARE_LAWS_RANK_GRAPHS_H_
#define NPUMESH_GRAPH_COMPARE_LAWS_RANK_GRAPHS_H_

#include <string>
#include <vector>

#include "collectives/group_names.h"
#include "graph/ir/graph.h"

namespace npumesh {

struct RankGraphs {
  // By rank; several ranks may run the same model. Not owned.
  std::vector<const Model*> models;
  // Groups by name, as model_relation_config.json lists them.
  GroupTable groups;

  int size() const { return static_cast<int>(models.size()); }
};

// The members of a group in group order. Errors as RanksInWorld.
Result<std::vector<int>> MembersOfGroup(const std::string& group, const RankGraphs& graphs);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_LAWS_RANK_GRAPHS_H_
