// What the rules of rules.h are made of.
//
// Thread-safety: all functions may be called from several threads.
#ifndef NPUMESH_GRAPH_SHARD_RULE_PARTS_H_
#define NPUMESH_GRAPH_SHARD_RULE_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/bound_axes.h"
#include "graph/shard/layout_rules.h"

namespace npumesh {

// The node takes everything whole, for this reason.
RuleOutcome Whole(std::string why);
// Every input and output is whole.
RuleAnswer AllReplicated(const RuleQuestion& question);

bool IsSplit(const RuleInput& input);
bool AnySplit(const RuleQuestion& question);

// `input` in pieces like those of `like`, but along `axis`; nullopt: it cannot be had so.
std::optional<ShardLayout> AsPieces(const RuleInput& input, int axis, const ShardLayout& like);

// Position in Node::inputs of the first tensor of a port; none: it is not fed, or the operator has
// no such port.
std::optional<size_t> InputAt(const RuleQuestion& question, std::string_view port);

// Integers of ports and attributes; those of a port whose value the inputs of the graph decide are
// not known. REQUIRES: `question` outlives it.
AxisValues KnownValues(const RuleQuestion& question);

// The port, or the attribute in its place, with the sizes of a tensor, divided by the `divisors`.
// Nullopt: it has another number of sizes.
std::optional<ScaledSizes> SizesAt(const RuleQuestion& question, std::string_view name,
                                   std::vector<int64_t> divisors);

// Where the operator is told the sizes of its output `output`, which is split along `axis`: adds
// those of a piece. False: they cannot be changed.
bool ScaleSizes(const RuleQuestion& question, size_t output, int axis, int pieces,
                RuleAnswer* answer);

// The axis, not one of size 1, that has this many elements before it; nullopt: no such axis.
std::optional<int> AxisAfter(const Shape& shape, int64_t before);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_RULE_PARTS_H_
