// How an operator carries tensors that are split over ranks along one axis.
//
// Thread-safety: all functions may be called from several threads.
#ifndef NPUMESH_GRAPH_SHARD_LAYOUT_RULES_H_
#define NPUMESH_GRAPH_SHARD_LAYOUT_RULES_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// Where the pieces of a tensor lie.
enum class Spread : uint8_t {
  kReplicated,  // each rank has all of it
  kSplit,       // rank r has the r-th of N equal pieces along `axis`
  kPartial,     // the tensor is the sum of what the ranks have
};

struct Layout {
  Spread spread = Spread::kReplicated;
  int axis = 0;  // of kSplit
  bool operator==(const Layout&) const = default;
  static Layout Replicated() { return {}; }
  static Layout Split(int axis) { return {Spread::kSplit, axis}; }
  static Layout Partial() { return {Spread::kPartial, 0}; }
};

// "replicated", "split along axis 2", "partial sum".
std::string ToText(const Layout& layout);

// One input of a node, by its position in Node::inputs.
struct RuleInput {
  bool connected = false;
  TensorType type;                // of the whole tensor
  const Tensor* known = nullptr;  // its value, where it is known before the graph runs
  Layout layout;                  // of a known input: replicated; it may be sliced freely
};

struct RuleQuestion {
  const Node& node;
  const Operator& op;
  std::vector<RuleInput> inputs;
  std::vector<TensorType> outputs;  // of the whole tensors
  int ranks = 1;
};

struct RuleAnswer {
  // The layouts in which the node takes its inputs. A known input that is asked for as kPartial
  // is itself on rank 0 and zero on the others.
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

// What the node makes of its inputs, whose layouts are kept. nullopt: it cannot carry them, and the
// split ones have to be gathered before. A product of replicated values and a weight is split along
// the columns of the weight. Error (kUnsupported): a split that the node has to carry, but whose
// axis does not fall into equal pieces (heads that N does not divide); names node, operator and
// what is needed.
Result<std::optional<RuleAnswer>> ApplyRule(const RuleQuestion& question);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_LAYOUT_RULES_H_
