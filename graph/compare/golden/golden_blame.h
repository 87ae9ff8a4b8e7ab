// GoldenBlame: which ranks explain why N ranks do not compute what one does.
#ifndef NPUMESH_GRAPH_COMPARE_GOLDEN_GOLDEN_BLAME_H_
#define NPUMESH_GRAPH_COMPARE_GOLDEN_GOLDEN_BLAME_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/compare/golden/golden.h"
#include "graph/compare/laws/rank_graphs.h"
#include "graph/compare/replay/weight_shards.h"

namespace npumesh {

struct GoldenBlame {
  // World ranks, ascending. Empty: nothing tells the ranks apart.
  std::vector<int> ranks;
  // A weight of the operator that is not that of the whole graph on these ranks.
  std::optional<WrongShard> shard;
  // Where the operator comes from (graph/ir/node_origin.h); empty where its node does not tell.
  std::string origin;

  int rank() const { return ranks.empty() ? -1 : ranks.front(); }  // -1: not known
};

// The ranks to blame for `first`, the first row that differs. Of what can be known the nearest to
// the cause wins: ranks whose values are wrong while those of others are right; a weight that is
// not the whole graph's, because its error reaches all ranks over a sum; ranks that do not compute
// what they were given. `ranks`: inputs and outputs of the operator, by rank. Replays the operator
// on threads of this process, each with a device as `env` says. Errors: weights that cannot be
// read, and those of Replay.
Result<GoldenBlame> FindGoldenBlame(const RankGraphs& graphs, const Model& whole,
                                    const GoldenRow& first, const RankSources& ranks,
                                    const Env& env, const OpRegistry& registry);

// "rank 1 differs first", "ranks 0-1 differ first", "all ranks hold the same wrong sum": who, of a
// sentence that goes on with the operator.
std::string WhoText(const GoldenRow& first, const GoldenBlame& blame);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_GOLDEN_GOLDEN_BLAME_H_
