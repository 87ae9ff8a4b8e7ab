// ShardModel: a graph of one card becomes the graphs of N ranks (tensor parallelism).
//
// Layouts flow from the inputs, which every rank has, to the outputs, which every rank gets. A
// product with a weight is split along the columns of the weight; the operators after it carry the
// split (layout_rules.h) up to a product that sums over the split axis, which is split along the
// rows of its weight and summed over all ranks. What cannot carry a split gets the gathered value.
#ifndef NPUMESH_GRAPH_SHARD_SHARD_MODEL_H_
#define NPUMESH_GRAPH_SHARD_SHARD_MODEL_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

enum class ShardFate : uint8_t { kSharded, kReplicated, kReduced, kGathered };

// What became of one node, or of a value that had to be gathered for it.
struct ShardNote {
  ShardFate fate = ShardFate::kReplicated;
  std::string node;
  std::string type;
  std::string text;  // "output split along axis 2"
};

struct ShardedModel {
  std::vector<Model> models;     // by rank
  std::vector<ShardNote> notes;  // in execution order
};

// The graphs of `ranks` ranks of the group hccl_world_group, which together compute `model`; all of
// them have its inputs and outputs. Errors: kInvalidArgument (fewer than 2 ranks; an input with an
// open dimension), kUnsupported (names the first node that stands in the way, its operator and what
// is needed), and those of inference. Thread-safety: none.
Result<ShardedModel> ShardModel(const Model& model, const OpRegistry& registry, int ranks);

// One line for each node: "sharded     MatMul_1  MatMul  output split along axis 1", then the sums.
std::string ShardNotesAsText(const std::vector<ShardNote>& notes);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_SHARD_MODEL_H_
