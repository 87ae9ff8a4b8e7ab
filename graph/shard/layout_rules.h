// How an operator carries tensors that are split over ranks. What operators say of themselves is in
// their axes (graph/ops/core/axes.h) and traits (shard_traits.h); here is what follows from it.
//
// Thread-safety: all functions may be called from several threads.
#ifndef NPUMESH_GRAPH_SHARD_LAYOUT_RULES_H_
#define NPUMESH_GRAPH_SHARD_LAYOUT_RULES_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/ops/core/operator.h"
#include "graph/shard/layout.h"

namespace npumesh {

// One input of a node, by its position in Node::inputs.
struct RuleInput {
  bool connected = false;
  TensorType type;  // of the whole tensor, static
  // Its value is known whatever the inputs of the graph are: any piece of it may be asked for.
  bool known = false;
  ShardLayout layout;
};

struct RuleQuestion {
  const Node& node;
  const Operator& op;
  const OpContext& context;  // with the values that are known for these types
  std::vector<RuleInput> inputs;
  std::vector<TensorType> outputs;  // of the whole tensors
  int ranks = 1;
  // Of a product with a known weight: into how many pieces its columns are to be split (0: as many
  // as ranks, 1: not), and in which blocks.
  int wished_pieces = 0;
  std::vector<int64_t> wished_blocks;
  // Rows of the tables that are split by rows when positions are looked up in them.
  int64_t vocabulary = 0;
};

// An input or an attribute with sizes, of which those of a piece are made.
struct ScaledSizes {
  size_t input = 0;
  std::vector<int64_t> divisors;  // by element
  std::string attr = {};          // in place of an input

  // What the piece has of `whole`; -1 stays "whatever is left".
  std::vector<int64_t> Of(std::vector<int64_t> whole) const;
};

struct RuleAnswer {
  // The layouts in which the node takes its inputs and leaves its outputs.
  std::vector<ShardLayout> inputs;
  std::vector<ShardLayout> outputs;
  std::optional<ScaledSizes> sizes;
  // Output 0 has the sizes of a piece; times these they are those of the whole.
  std::vector<int64_t> growth;
  // Attributes with other values on the ranks.
  std::vector<std::pair<std::string, int64_t>> attrs;
  // Input 0 is a table of which a rank has some rows: rows that it does not have count as zeros.
  bool rows_of_table = false;
};

// How the value of an input would have to be split so that the node can carry it.
struct Wish {
  size_t input = 0;
  int pieces = 0;               // 0: as it is; 1: not at all
  std::vector<int64_t> blocks;  // of the split axis
  std::string reason;
};

struct RuleOutcome {
  // None: the node takes everything whole.
  std::optional<RuleAnswer> answer;
  std::optional<Wish> wish;
  std::string why;  // there is no answer; or a product with a weight is not split
};

RuleOutcome ApplyRule(const RuleQuestion& question);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_LAYOUT_RULES_H_
