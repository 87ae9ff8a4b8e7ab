// ShardModel: a graph of one card becomes the graphs of N ranks (tensor parallelism); how, is in
// layout_plan.h and docs/sharding.md.
#ifndef NPUMESH_GRAPH_SHARD_SHARD_MODEL_H_
#define NPUMESH_GRAPH_SHARD_SHARD_MODEL_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "graph/shard/layout.h"

namespace npumesh {

enum class ShardFate : uint8_t { kSharded, kReplicated, kReduced, kGathered };
// "sharded", "replicated", "reduced", "gathered".
std::string_view Name(ShardFate fate);

// Attribute of a rank's node: what became of it, "sharded: axis 1". Nodes that every rank has whole
// have none.
inline constexpr std::string_view kShardAttr = "_npumesh_shard";

// What became of one node, or of a value that had to be gathered for a node.
struct ShardNote {
  ShardFate fate = ShardFate::kReplicated;
  std::string node;
  std::string type;
  std::string text;  // "axis 2; weight w1: axis 1"
  // Replicated, and all it makes are integers or truth values: sizes, positions, masks.
  bool counts = false;
};

// A value that both the whole graph and those of the ranks have.
struct ShardedValue {
  std::string whole;  // node
  std::string part;   // node of a rank's graph
  std::string type;
  int port = 0;
  int part_port = 0;
  ShardLayout layout;
};

struct ShardedModel {
  std::vector<Model> models;     // by rank
  std::vector<ShardNote> notes;  // in execution order
  // By position among the inputs and outputs of the graph.
  std::vector<ShardLayout> inputs;
  std::vector<ShardLayout> outputs;
  std::vector<ShardedValue> values;  // in execution order
};

// The graphs of `ranks` ranks of the group hccl_world_group, which together compute `model`.
// `sample`: one tensor for each input, of the sizes that the split is decided for; which axes are
// split does not depend on sizes that are open. Errors: kInvalidArgument (fewer than 2 ranks),
// kUnsupported (names the first node that stands in the way, its operator and what is needed), and
// those of inference. Thread-safety: none.
Result<ShardedModel> ShardModel(const Model& model, const OpRegistry& registry, int ranks,
                                const std::vector<Tensor>& sample);

// A table of the nodes, but those that only count, whose columns are two blanks apart; then a line
// with the sums of all.
std::string ShardNotesAsText(const std::vector<ShardNote>& notes);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_SHARD_MODEL_H_
