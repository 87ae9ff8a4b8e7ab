// What the rules of layout_rules.h are made of.
//
// Thread-safety: all functions may be called from several threads.
#ifndef NPUMESH_GRAPH_SHARD_RULE_PARTS_H_
#define NPUMESH_GRAPH_SHARD_RULE_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/shard/layout_rules.h"

namespace npumesh {

// The node takes everything whole, for this reason.
RuleOutcome Whole(std::string why);
// Every input and output is whole.
RuleAnswer AllReplicated(const RuleQuestion& question);

bool IsSplit(const RuleInput& input);

// What the split inputs have in common, with axes that count from the last one.
struct Common {
  int from_end = 0;
  int pieces = 1;
  std::vector<int64_t> blocks;
};

// Nullopt: no input is split, or they are split along several axes or in other blocks.
std::optional<Common> CommonSplit(const RuleQuestion& question);

// `input` in pieces along `axis`; nullopt: it cannot be had so.
std::optional<ShardLayout> AsPieces(const RuleInput& input, int axis, const Common& common);

// The words of a list with blanks between them.
std::vector<std::string_view> WordsIn(std::string_view list);

// Position in Node::inputs of the first tensor of a port; none: it is not fed, or the operator has
// no such port.
std::optional<size_t> InputAt(const RuleQuestion& question, std::string_view port);

// Integers of an attribute, one or several, with the default of the schema. Nullopt: there is no
// such attribute.
std::optional<std::vector<int64_t>> IntsOfAttr(const RuleQuestion& question, std::string_view name);

// Integers of a port or an attribute. Nullopt: not known, or a port whose value the inputs of the
// graph decide.
std::optional<std::vector<int64_t>> IntsAt(const RuleQuestion& question, std::string_view name);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SHARD_RULE_PARTS_H_
