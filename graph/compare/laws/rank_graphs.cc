#include "graph/compare/laws/rank_graphs.h"

namespace npumesh {

Result<std::vector<int>> MembersOfGroup(const std::string& group, const RankGraphs& graphs) {
  return RanksInWorld(group, graphs.groups, graphs.size());
}

}  // namespace npumesh
