// Weights of N ranks against those of the whole graph: a wrong shard is the most frequent reason
// why a sharded model computes something else.
#ifndef NPUMESH_GRAPH_COMPARE_WEIGHT_SHARDS_H_
#define NPUMESH_GRAPH_COMPARE_WEIGHT_SHARDS_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/compare/shards.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

struct WrongShard {
  int rank = 0;
  int ranks = 1;
  std::string weight;  // of the rank's graph: "arg7_1 (rank_2/arg7_1)"
  std::string whole;   // name of the whole graph's
  Sharding sharding;   // how the other ranks' shards make up the whole
  Shape shard_shape;
  int64_t differing = 0;
  int64_t first = 0;  // element of the shard
};

// The first weight of operator `key` of which a rank does not hold its part of the weight that
// `whole_key` has in the same place. Nullopt: all shards fit, or most of a weight does not: then
// the graphs are of different models. Reads weights; errors as LoadWeight.
Result<std::optional<WrongShard>> FindWrongShard(const std::vector<const Model*>& ranks,
                                                 const Model& whole, const std::string& key,
                                                 const std::string& whole_key,
                                                 const OpRegistry& registry);

// "its weight arg7_1 (rank_2/arg7_1): the shard of rank 2 is not rows 32..47 of the whole weight
// arg7_1: 1 of 4096 elements differ, first [0,100]".
std::string ToText(const WrongShard& wrong);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_WEIGHT_SHARDS_H_
