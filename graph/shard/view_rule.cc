// Views: the same elements in the same order under another shape.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/shard/rule_parts.h"
#include "graph/shard/rules.h"

namespace npumesh {
namespace {

// The axis of `to` that begins with the elements of `axis` of `from`, where both are one row of
// elements; nullopt: none does, because axes before it are merged with it.
std::optional<int> AxisOfView(const Shape& from, int axis, const Shape& to) {
  int64_t before = 1;
  for (int i = 0; i < axis; ++i) before *= from[i];
  return AxisAfter(to, before);
}

}  // namespace

RuleOutcome ViewRule(const RuleQuestion& question) {
  const RuleInput& input = question.inputs[0];
  if (!IsSplit(input) || question.op.retypes) return Whole("it is a view of bytes");
  const Shape& from = input.type.shape;
  const Shape& to = question.outputs[0].shape;
  const ShardLayout& layout = input.layout;
  const std::optional<int> begins = AxisOfView(from, layout.axis, to);
  if (!begins) return Whole(fmt::format("axis {} of {} is merged in {}", layout.axis, from, to));
  int axis = *begins;
  const int64_t size = from[layout.axis];
  const auto count = static_cast<int64_t>(layout.blocks.size());
  std::vector<int64_t> blocks = layout.blocks;
  if (!blocks.empty() && to[axis] != size) {
    const bool equal = std::all_of(blocks.begin(), blocks.end(),
                                   [&](int64_t block) { return block == blocks.front(); });
    if (!equal || to[axis] != count || axis + 1 >= to.rank()) {
      return {{}, Wish{0, 1, {}, fmt::format("{} becomes {}", from, to)}, "blocks"};
    }
    ++axis;
    blocks.clear();
  }
  if (blocks.empty() && to[axis] % layout.pieces != 0) {
    const auto few = static_cast<int>(std::gcd<int64_t>(to[axis], layout.pieces));
    const bool blocks_help = few == 1 && axis + 1 < to.rank() && size % to[axis] == 0 &&
                             to[axis + 1] % layout.pieces == 0 && to[axis] <= 3;
    Wish wish{
        0,
        few,
        {},
        fmt::format("{} parts (heads) do not fall into {} equal pieces", to[axis], layout.pieces)};
    if (blocks_help) {
      wish.pieces = 0;
      wish.blocks.assign(static_cast<size_t>(to[axis]), size / to[axis]);
    }
    return {{}, wish, wish.reason};
  }
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[0] = layout;
  answer.outputs[0] = ShardLayout::Split(axis, layout.pieces, blocks);
  if (!ScaleSizes(question, 0, axis, layout.pieces, &answer))
    return Whole("its sizes are not known");
  return {answer, {}, {}};
}

}  // namespace npumesh
