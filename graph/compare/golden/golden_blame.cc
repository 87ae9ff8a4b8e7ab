#include "graph/compare/golden/golden_blame.h"

#include <algorithm>

#include "graph/compare/replay/replay.h"
#include "graph/ir/node_origin.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

using Kind = Sharding::Kind;

std::string OriginOf(const GoldenRow& row, const RankGraphs& graphs) {
  for (const auto& model : graphs.models) {
    for (const Node& node : model->graph.nodes()) {
      if (!node.removed && OperatorKey(node.name) == row.key) return NodeOrigin(node);
    }
  }
  return "";
}

bool HaveCommon(const std::vector<int>& a, const std::vector<int>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

// Ranks whose operator `key` computes something else than a replay on its own inputs.
Result<std::vector<int>> RanksByReplay(const RankGraphs& graphs, const std::string& key,
                                       const RankSources& ranks, const Env& env,
                                       const OpRegistry& registry) {
  ReplayOptions replay;
  replay.only = {key};
  replay.collectives = false;
  replay.registry = &registry;
  NPUMESH_ASSIGN_OR_RETURN(const Replayed replayed, Replay(graphs, ranks, env, replay));
  std::vector<int> blamed;
  for (size_t rank = 0; rank < replayed.ranks.size(); ++rank) {
    if (replayed.ranks[rank].First() != nullptr) blamed.push_back(static_cast<int>(rank));
  }
  return blamed;
}

}  // namespace

Result<GoldenBlame> FindGoldenBlame(const RankGraphs& graphs, const Model& whole,
                                    const GoldenRow& first, const RankSources& ranks,
                                    const Env& env, const OpRegistry& registry) {
  GoldenBlame blame;
  blame.ranks = first.fit.OddRanks();
  blame.origin = OriginOf(first, graphs);
  NPUMESH_ASSIGN_OR_RETURN(
      blame.shard, FindWrongShard(graphs.models, whole, first.key, first.whole_key, registry));
  if (!blame.ranks.empty()) {
    // A weight of ranks whose values are right does not explain them.
    if (blame.shard && !HaveCommon(blame.shard->wrong, blame.ranks)) blame.shard.reset();
    return blame;
  }
  if (blame.shard) {
    blame.ranks = blame.shard->wrong;
    return blame;
  }
  NPUMESH_ASSIGN_OR_RETURN(blame.ranks, RanksByReplay(graphs, first.key, ranks, env, registry));
  return blame;
}

std::string WhoText(const GoldenRow& first, const GoldenBlame& blame) {
  if (!blame.ranks.empty()) {
    return fmt::format("{} differ{} first", RanksText(blame.ranks),
                       blame.ranks.size() == 1 ? "s" : "");
  }
  switch (first.fit.sharding.kind) {
    case Kind::kSum:
      return "the sum of all ranks differs first";
    case Kind::kMax:
    case Kind::kMin:
      return "what all ranks reduce differs first";
    default:
      break;
  }
  if (!first.fit.alike) return "all ranks differ first";
  return fmt::format("all ranks hold the same wrong {}", first.reduces ? "sum" : "values");
}

}  // namespace npumesh
