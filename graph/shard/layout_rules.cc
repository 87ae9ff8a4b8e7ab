#include "graph/shard/layout_rules.h"

#include <algorithm>

#include "graph/shard/rule_parts.h"
#include "graph/shard/rules.h"

namespace npumesh {
namespace {

// Pieces of other tensors are not made.
bool HasWholeBytes(const TensorType& type) {
  return BitsOf(type.dtype) % 8 == 0 && type.shape.is_static();
}

}  // namespace

std::vector<int64_t> ScaledSizes::Of(std::vector<int64_t> whole) const {
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] > 0) whole[i] /= divisors[i];
  }
  return whole;
}

RuleOutcome ApplyRule(const RuleQuestion& question) {
  const Operator& op = question.op;
  const bool padded = std::ranges::any_of(
      question.inputs, [](const RuleInput& input) { return input.layout.padding > 0; });
  if (padded && op.axes.permutation().empty()) return Whole("its operand is padded");
  const bool begins = op.axes.product() || op.axes.looked_up() != nullptr;
  if (!begins && !AnySplit(question)) return {AllReplicated(question), {}, {}};
  if (!op.axes.product() && !std::ranges::all_of(question.outputs, HasWholeBytes)) {
    return Whole("its outputs have no whole bytes or open sizes");
  }
  if (op.view) return ViewRule(question);
  if (op.heads) return HeadsRule(question, *op.heads);
  if (op.rows) return RowsRule(question, *op.rows);
  if (op.axes.given()) return AxesRule(question);
  return Whole("npumesh does not know how it carries pieces");
}

}  // namespace npumesh
