#include "graph/compare/replay/weight_shards.h"

#include <algorithm>
#include <cstring>

#include "graph/compare/replay/replay.h"
#include "graph/compare/sources/input_numbers.h"
#include "graph/compare/sources/weight_behind.h"
#include "graph/io/weights.h"
#include "runtime/base/text/rank_list.h"

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

// The rank whose part of the whole `shard` is, to the last bit; -1: no rank's.
int OwnerOf(const Tensor& shard, const Tensor& whole, const Sharding& sharding, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    const Tensor part = PartOf(whole, sharding, rank, ranks);
    if (std::memcmp(part.data(), shard.data(), part.bytes()) == 0) return rank;
  }
  return -1;
}

// WrongShard::holds.
std::vector<int> Owners(const std::vector<Tensor>& shards, const ShardFit& fit,
                        const Tensor& whole) {
  const auto ranks = static_cast<int>(shards.size());
  std::vector<int> owners = AllRanks(ranks);
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    if (fit.differing[rank] == 0) continue;
    owners[rank] =
        fit.sharding.kind == Kind::kEqual ? -1 : OwnerOf(shards[rank], whole, fit.sharding, ranks);
  }
  return owners;
}

size_t Owned(const std::vector<int>& owners) {
  return owners.size() - static_cast<size_t>(std::count(owners.begin(), owners.end(), -1));
}

// A form of the shards, and whose parts they are in it.
struct OwnedFit {
  ShardFit fit;
  std::vector<int> owners;
};

// Shards that lie at other ranks fit no form by their elements: then the form in which the most of
// them are a rank's part.
OwnedFit FitWeight(const std::vector<Tensor>& shards, const Tensor& whole) {
  OwnedFit best;
  best.fit = FitShards(shards, whole, Allowance());
  if (best.fit.sharding.kind == Kind::kEqual || best.fit.sharding.kind == Kind::kPieces) {
    best.owners = Owners(shards, best.fit, whole);
  }
  if (best.fit.sharding.kind != Kind::kPieces || best.fit.same()) return best;
  for (const ShardFit& fit : AllFits(shards, whole, Allowance())) {
    std::vector<int> owners = Owners(shards, fit, whole);
    if (Owned(owners) > Owned(best.owners)) best = {fit, std::move(owners)};
  }
  return best;
}

// What does not fit in one weight; nullopt: all does, or nothing can be said.
std::optional<WrongShard> Judge(const std::vector<Tensor>& shards, const Tensor& whole) {
  const auto [fit, owners] = FitWeight(shards, whole);
  if (owners.empty() || fit.same() || !fit.distance.reason.empty()) return std::nullopt;
  WrongShard found;
  int64_t strange = 0;  // elements that are in no rank's part
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    if (fit.differing[rank] == 0) continue;
    found.wrong.push_back(static_cast<int>(rank));
    if (owners[rank] < 0) strange += fit.differing[rank];
  }
  const auto all = static_cast<int64_t>(shards.size()) * shards.front().elements();
  if (strange > all / 2) return std::nullopt;
  found.rank = found.wrong.front();
  found.ranks = static_cast<int>(shards.size());
  found.holds = owners;
  found.sharding = fit.sharding;
  found.shard_shape = shards.front().shape();
  found.differing = fit.distance.differing;
  found.first = fit.distance.first;
  return found;
}

// "rows 16..31", "piece 1 of 2 along axis 1 in 2 blocks", "" for a whole.
std::string PartText(const WrongShard& wrong, int rank) {
  if (wrong.sharding.kind == Kind::kEqual) return "";
  const int axis = wrong.sharding.axis;
  if (wrong.sharding.blocks > 1) {
    return fmt::format("piece {} of {} along axis {} in {} blocks", rank, wrong.ranks, axis,
                       wrong.sharding.blocks);
  }
  const int64_t size = wrong.shard_shape[axis];
  const std::string place = axis == 0   ? "rows"
                            : axis == 1 ? "columns"
                                        : fmt::format("axis {} at", axis);
  return fmt::format("{} {}..{}", place, rank * size, (rank + 1) * size - 1);
}

std::string WholeText(const WrongShard& wrong, int rank) {
  const std::string part = PartText(wrong, rank);
  return fmt::format("{}{}the whole weight {}", part, part.empty() ? "" : " of ", wrong.whole);
}

// Every wrong shard is the part of another rank with a wrong shard, and none is there twice.
bool IsPermuted(const WrongShard& wrong) {
  std::vector<int> held;
  for (const int rank : wrong.wrong) held.push_back(wrong.holds[static_cast<size_t>(rank)]);
  std::sort(held.begin(), held.end());
  return held == wrong.wrong;
}

std::string OneShardText(const WrongShard& wrong) {
  const int holds = wrong.holds[static_cast<size_t>(wrong.rank)];
  const std::string instead =
      holds < 0 ? ""
                : fmt::format(", but {}, which rank {} has to hold", PartText(wrong, holds), holds);
  return fmt::format("the shard of rank {} is not {}{}: {} of {} elements differ, first {}",
                     wrong.rank, WholeText(wrong, wrong.rank), instead, wrong.differing,
                     wrong.shard_shape.elements(), PositionText(wrong.first, wrong.shard_shape));
}

std::string ShardsText(const WrongShard& wrong) {
  constexpr size_t kMostRanks = 4;
  std::string text = fmt::format("the shards of {} are ", RanksText(wrong.wrong));
  const bool permuted = IsPermuted(wrong);
  text += permuted && wrong.wrong.size() == 2 ? "exchanged" : permuted ? "permuted" : "wrong";
  for (size_t i = 0; i < wrong.wrong.size() && i < kMostRanks; ++i) {
    const int rank = wrong.wrong[i];
    const int holds = wrong.holds[static_cast<size_t>(rank)];
    text += fmt::format("{} rank {} ", i == 0 ? ":" : ",", rank);
    text += holds < 0 ? "does not hold " : "holds ";
    const int part = holds < 0 ? rank : holds;
    text += i == 0 || wrong.sharding.kind == Kind::kEqual ? WholeText(wrong, part)
                                                          : PartText(wrong, part);
  }
  return wrong.wrong.size() > kMostRanks ? text + ", ..." : text;
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
  return fmt::format("its weight {}: {}", wrong.weight,
                     wrong.wrong.size() == 1 ? OneShardText(wrong) : ShardsText(wrong));
}

}  // namespace npumesh
