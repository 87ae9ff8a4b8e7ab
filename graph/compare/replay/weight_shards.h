// Weights of N ranks against those of the whole graph: a wrong shard is the most frequent reason
// why a sharded model computes something else.
#ifndef NPUMESH_GRAPH_COMPARE_REPLAY_WEIGHT_SHARDS_H_
#define NPUMESH_GRAPH_COMPARE_REPLAY_WEIGHT_SHARDS_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/compare/measures/shards.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

struct WrongShard {
  int rank = 0;            // the lowest whose shard is wrong
  std::vector<int> wrong;  // all whose shard is wrong, ascending
  int ranks = 1;
  // By rank: whose part of the whole it holds, to the last bit: its own where that fits; -1: no
  // rank's.
  std::vector<int> holds;
  std::string weight;  // of `rank`'s graph: "arg7_1 (rank_2/arg7_1)"
  std::string whole;   // name of the whole graph's
  Sharding sharding;   // how the other ranks' shards make up the whole
  Shape shard_shape;
  int64_t differing = 0;  // of `rank`'s shard
  int64_t first = 0;      // element of the shard
};

// The first weight of operator `key` of which a rank does not hold its part of the weight that
// `whole_key` has in the same place. Nullopt: all shards fit, or most of a weight does not and no
// rank holds another's part: then the graphs are of different models. Reads weights; errors as
// LoadWeight.
Result<std::optional<WrongShard>> FindWrongShard(const std::vector<const Model*>& ranks,
                                                 const Model& whole, const std::string& key,
                                                 const std::string& whole_key,
                                                 const OpRegistry& registry);

// "its weight arg7_1 (rank_2/arg7_1): the shard of rank 2 is not rows 32..47 of the whole weight
// arg7_1: 1 of 4096 elements differ, first [0,100]"; "its weight w: the shards of ranks 0 and 1 are
// exchanged: rank 0 holds rows 16..31 of the whole weight w, rank 1 rows 0..15".
std::string ToText(const WrongShard& wrong);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_REPLAY_WEIGHT_SHARDS_H_
