// precision_mode in a graph: Cast nodes, so that operators compute in the types that a rule chooses
// (docs/precision.md).
#ifndef NPUMESH_GRAPH_PASSES_REWRITE_PRECISION_H_
#define NPUMESH_GRAPH_PASSES_REWRITE_PRECISION_H_

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/op_registry.h"
#include "graph/passes/rewrite/precision_rule.h"

namespace npumesh {

// Attribute of a node whose type was chosen, and of the Cast nodes around it: what and why, in
// words. `npumesh graph --plan` shows it.
inline constexpr std::string_view kPrecisionNote = "_precision";

// What is known of the values of a graph before anything runs.
struct KnownValues {
  // Dtype kUndefined: unknown.
  std::function<const TensorType&(Value)> type;
  // The value, where it decides a shape and is the same for all inputs; null: unknown.
  std::function<const Tensor*(Value)> constant;
};

// Lets the operators of a graph compute as the rule says. An operator that changes reads its floats
// through Cast nodes "<node>/cast_<port>", unless their producer gives the type already; whatever
// else reads its outputs reads them through Cast nodes "<node>/cast_<output port>", so graph
// outputs, operands of collectives, targets of in-place operators and operators that stay have the
// types that the graph declares. Two readers of a value in the same type share its Cast. A Cast
// stands after the producer of what it reads, so the order of the other nodes stays.
//
// What stays whatever the rule says: operators of unknown types or whose floats have several types,
// those that read numbers of 8 bits or fewer, in-place and random ones, collectives, those with
// effects, subgraphs or late shapes, those of class kKept, and what decides shapes. Errors as
// Graph::StableOrder. REQUIRES: graph.Verify() is OK, ResolveOverwrites ran, and the registry has
// Cast. Local.
Status ChoosePrecision(Graph& graph, const OpRegistry& registry, const KnownValues& values,
                       const PrecisionRule& rule);

// The outputs, in declared types, of an operator that refuses its declared inputs but takes another
// type that the rule prefers then; nullopt: it takes none.
std::optional<std::vector<TensorType>> TypesInNeed(const Operator& op, const OpContext& context,
                                                   const PrecisionRule& rule);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_REWRITE_PRECISION_H_
