#include "graph/compare/weight_shards.h"

#include <algorithm>
#include <numeric>

#include "graph/compare/input_numbers.h"
#include "graph/compare/replay.h"
#include "graph/compare/weight_behind.h"
#include "graph/io/weights.h"

namespace npumesh {
namespace {

using Kind = Sharding::Kind;

// The weights behind the inputs of an operator, by input number; null where an input has none.
// Empty: the graph does not have the operator.
std::vector<const Node*> WeightsOf(const Graph& graph, const std::string& key,
                                   const OpRegistry& registry) {
  const Node* const node = FindByKey(graph, key);
  if (node == nullptr) return {};
  const std::vector<bool> constant = ConstantNodes(graph, registry);
  std::vector<const Node*> weights;
  for (const size_t input : DumpedInputs(*node, registry)) {
    weights.push_back(WeightBehind(graph, constant, *node->inputs[input]));
  }
  return weights;
}

// What does not fit in one weight; nullopt: all does, or nothing can be said.
std::optional<WrongShard> Judge(const std::vector<Tensor>& shards, const Tensor& whole) {
  const ShardFit fit = FitShards(shards, whole, Allowance());
  if (fit.sharding.kind != Kind::kEqual && fit.sharding.kind != Kind::kPieces) return std::nullopt;
  if (fit.same() || !fit.distance.reason.empty()) return std::nullopt;
  const auto wrong = std::accumulate(fit.differing.begin(), fit.differing.end(), int64_t{0});
  const auto all = static_cast<int64_t>(shards.size()) * shards.front().elements();
  if (wrong > all / 2) return std::nullopt;
  WrongShard found;
  found.rank = fit.RankToBlame();
  found.ranks = static_cast<int>(shards.size());
  found.sharding = fit.sharding;
  found.shard_shape = shards.front().shape();
  found.differing = fit.distance.differing;
  found.first = fit.distance.first;
  return found;
}

std::string PartText(const WrongShard& wrong) {
  if (wrong.sharding.kind == Kind::kEqual) return "";
  const int axis = wrong.sharding.axis;
  if (wrong.sharding.blocks > 1) {
    return fmt::format("piece {} of {} along axis {} in {} blocks of ", wrong.rank, wrong.ranks,
                       axis, wrong.sharding.blocks);
  }
  const int64_t size = wrong.shard_shape[axis];
  const std::string place = axis == 0   ? "rows"
                            : axis == 1 ? "columns"
                                        : fmt::format("axis {} at", axis);
  return fmt::format("{} {}..{} of ", place, wrong.rank * size, (wrong.rank + 1) * size - 1);
}

}  // namespace

Result<std::optional<WrongShard>> FindWrongShard(const std::vector<const Model*>& ranks,
                                                 const Model& whole, const std::string& key,
                                                 const std::string& whole_key,
                                                 const OpRegistry& registry) {
  std::optional<WrongShard> found;
  const std::vector<const Node*> theirs = WeightsOf(whole.graph, whole_key, registry);
  std::vector<std::vector<const Node*>> mine;
  for (const Model* model : ranks) {
    mine.push_back(WeightsOf(model->graph, key, registry));
    if (mine.back().size() != theirs.size()) return found;
  }
  for (size_t input = 0; input < theirs.size() && !found; ++input) {
    const auto lacks = [&](const auto& weights) { return weights[input] == nullptr; };
    if (theirs[input] == nullptr || std::any_of(mine.begin(), mine.end(), lacks)) continue;
    NPUMESH_ASSIGN_OR_RETURN(const Tensor golden, LoadWeight(*theirs[input], whole.path));
    std::vector<Tensor> shards;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      NPUMESH_ASSIGN_OR_RETURN(Tensor shard, LoadWeight(*mine[rank][input], ranks[rank]->path));
      shards.push_back(std::move(shard));
    }
    found = Judge(shards, golden);
    if (!found) continue;
    found->weight = WeightText(*mine[static_cast<size_t>(found->rank)][input]);
    found->whole = theirs[input]->name;
  }
  return found;
}

std::string ToText(const WrongShard& wrong) {
  return fmt::format(
      "its weight {}: the shard of rank {} is not {}the whole weight {}: {} of {} elements differ, "
      "first {}",
      wrong.weight, wrong.rank, PartText(wrong), wrong.whole, wrong.differing,
      wrong.shard_shape.elements(), PositionText(wrong.first, wrong.shard_shape));
}

}  // namespace npumesh
