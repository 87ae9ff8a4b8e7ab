// Rows that are copied into caches.
#include <fmt/format.h>

#include <numeric>

#include "graph/shard/rule_parts.h"
#include "graph/shard/rules.h"

namespace npumesh {
namespace {

// Asks for as many pieces of what comes in as divide `parts`.
RuleOutcome FewerPieces(const RuleQuestion& question, int parts) {
  const std::string why = fmt::format("{} parts of a row do not fall into equal pieces", parts);
  for (size_t i = 0; i < question.inputs.size(); ++i) {
    const int pieces = question.inputs[i].layout.pieces;
    if (!IsSplit(question.inputs[i]) || parts % pieces == 0) continue;
    return {{}, Wish{i, std::gcd(parts, pieces), {}, why}, why};
  }
  return Whole(why);
}

}  // namespace

// A rank has a part of every row.
RuleOutcome RowsRule(const RuleQuestion& question, const RowsTrait& trait) {
  const std::optional<size_t> places = InputAt(question, trait.positions);
  if (!places) return Whole("its places are not known");
  int pieces = 1;
  for (const RuleInput& input : question.inputs) {
    if (IsSplit(input)) pieces = std::lcm(pieces, input.layout.pieces);
  }
  RuleAnswer answer = AllReplicated(question);
  const int64_t count = question.inputs[*places].type.shape.elements();
  for (size_t i = 0; i < trait.rows.size() && i < question.outputs.size(); ++i) {
    const std::optional<size_t> rows = InputAt(question, trait.rows[i]);
    const std::optional<size_t> cache = InputAt(question, trait.caches[i]);
    if (!rows || !cache) continue;
    const RuleInput &from = question.inputs[*rows], &to = question.inputs[*cache];
    const std::optional<int> begin = AxisAfter(from.type.shape, count);
    if (!begin) return Whole(fmt::format("its {} is no list of rows", trait.rows[i]));
    const int axis = trait.axis(question.context);
    const int64_t parts = std::gcd(from.type.shape[*begin], to.type.shape[axis]);
    if (parts % pieces != 0) return FewerPieces(question, static_cast<int>(parts));
    const std::optional<ShardLayout> mine = AsPieces(from, *begin, ShardLayout::Split(0, pieces));
    const std::optional<ShardLayout> theirs = AsPieces(to, axis, ShardLayout::Split(0, pieces));
    if (!mine || !theirs) return Whole("its operands are split in different ways");
    answer.inputs[*rows] = *mine;
    answer.inputs[*cache] = *theirs;
    answer.outputs[i] = *theirs;
  }
  for (size_t i = 0; i < question.inputs.size(); ++i) {
    if (IsSplit(question.inputs[i]) && !answer.inputs[i].split()) {
      return Whole("its places are split");
    }
  }
  return {answer, {}, {}};
}

}  // namespace npumesh
