// ProveShards: the whole graph and the graphs of the ranks compute the same.
#ifndef NPUMESH_GRAPH_SHARD_SHARD_PROOF_H_
#define NPUMESH_GRAPH_SHARD_SHARD_PROOF_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/compare/measures/distance.h"
#include "graph/shard/shard_model.h"
#include "runtime/base/env/env.h"

namespace npumesh {

// Where whole and ranks part.
struct ShardDifference {
  size_t step = 0;
  int output = -1;   // of the graph; -1: what a RefData holds after the step
  std::string held;  // the name of that RefData
  std::string node;  // the first that differs, by its name in the whole graph
  std::string type;
  int rank = 0;      // the first of those that differ there
  std::string text;  // "3 of 12 elements differ, first [0,4]: 1.5, expected 2.5"
};

struct ShardProof {
  size_t steps = 0;
  size_t outputs = 0;
  std::vector<DataType> dtypes;  // of the outputs, each once
  double largest = 0;            // difference of two elements, over the largest of their tensor
  std::optional<ShardDifference> difference;
};

// Runs `whole` on one rank and the models of `sharded` on as many ranks, threads of this process
// with devices as `env` says, for each of `steps` (inputs of the whole graph by position), and
// compares all outputs, and after each step what RefData hold; an empty tensor leaves a RefData as
// it is. ReorderAllowance is what sums in another order may differ by. Of outputs that differ it
// runs both again and compares node by node. Blocks as long as they run. Errors: those of a run of
// the whole graph, or of the ranks.
Result<ShardProof> ProveShards(const Model& whole, const ShardedModel& sharded,
                               const OpRegistry& registry, const Env& env,
                               const std::vector<std::vector<Tensor>>& steps);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_SHARD_PROOF_H_
