#include "graph/shard/layout_rules.h"

#include <algorithm>

#include "graph/ops/split_facts.h"

namespace npumesh {
namespace {

using Answer = std::optional<RuleAnswer>;

bool IsSplit(const RuleInput& input) {
  return input.connected && input.layout.spread == Spread::kSplit;
}

// All inputs and outputs replicated.
RuleAnswer AllReplicated(const RuleQuestion& question) {
  return {std::vector<Layout>(question.inputs.size()),
          std::vector<Layout>(question.outputs.size())};
}

// NumPy's rule: axes count from the last one.
Answer ElementwiseRule(const RuleQuestion& question) {
  const int rank = question.outputs[0].shape.rank();
  std::optional<int> from_end;
  for (const RuleInput& input : question.inputs) {
    if (!IsSplit(input)) continue;
    const int distance = input.type.shape.rank() - input.layout.axis;
    if (from_end && *from_end != distance) return std::nullopt;
    from_end = distance;
  }
  RuleAnswer answer = AllReplicated(question);
  const int64_t size = question.outputs[0].shape[rank - *from_end];
  for (size_t i = 0; i < question.inputs.size(); ++i) {
    const RuleInput& input = question.inputs[i];
    if (!input.connected) continue;
    const int axis = input.type.shape.rank() - *from_end;
    if (axis < 0 || input.type.shape[axis] == 1) continue;  // broadcast along the split axis
    if (input.type.shape[axis] != size) return std::nullopt;
    if (!IsSplit(input) && input.known == nullptr) return std::nullopt;
    answer.inputs[i] = Layout::Split(axis);
  }
  for (size_t i = 0; i < question.outputs.size(); ++i) {
    if (question.outputs[i].shape != question.outputs[0].shape) return std::nullopt;
    answer.outputs[i] = Layout::Split(rank - *from_end);
  }
  return answer;
}

// The axis of `to` that begins with the elements of `axis` of `from`, where both are one row of
// bytes; nullopt: none does, because axes before it are merged with it.
std::optional<int> AxisOfView(const Shape& from, int axis, const Shape& to) {
  int64_t before = 1;
  for (int i = 0; i < axis; ++i) before *= from[i];
  int64_t passed = 1;
  for (int i = 0; i < to.rank(); ++i) {
    if (passed == before && to[i] != 1) return i;
    passed *= to[i];
  }
  return std::nullopt;
}

Result<Answer> ViewRule(const RuleQuestion& question) {
  const RuleInput& input = question.inputs[0];
  if (!IsSplit(input) || question.op.retypes) return Answer();
  const Shape& to = question.outputs[0].shape;
  const std::optional<int> axis = AxisOfView(input.type.shape, input.layout.axis, to);
  if (!axis) return Answer();
  if (to[*axis] % question.ranks != 0) {
    return Error(Code::kUnsupported,
                 "node \"{}\" ({}): the split axis {} of {} becomes axis {} of {}, whose {} parts "
                 "(heads) do not fall into {} equal pieces; needed: a number of ranks that divides "
                 "{}",
                 question.node.name, question.node.type, input.layout.axis, input.type.shape, *axis,
                 to, to[*axis], question.ranks, to[*axis]);
  }
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[0] = input.layout;
  answer.outputs[0] = Layout::Split(*axis);
  return Answer(answer);
}

std::vector<int64_t> IntsOf(const Tensor& tensor) {
  if (tensor.dtype() == DataType::kInt64) {
    const auto values = tensor.as<int64_t>();
    return {values.begin(), values.end()};
  }
  if (tensor.dtype() != DataType::kInt32) return {};
  const auto values = tensor.as<int32_t>();
  return {values.begin(), values.end()};
}

// Integers at a port, whose value must be known, or of an attribute.
std::optional<std::vector<int64_t>> IntsAt(const RuleQuestion& question, std::string_view port,
                                           std::string_view attr, int64_t fallback) {
  const int at = question.node.FindInput(port);
  if (at >= 0) {
    const Tensor* known = question.inputs[static_cast<size_t>(at)].known;
    if (known == nullptr) return std::nullopt;
    return IntsOf(*known);
  }
  std::vector<int64_t> ints = question.node.IntsAttr(attr);
  if (ints.empty()) ints.push_back(question.node.IntAttr(attr, fallback));
  return ints;
}

Answer PermutationRule(const RuleQuestion& question) {
  const auto order = IntsAt(question, question.op.permutation, question.op.permutation, 0);
  const RuleInput& input = question.inputs[0];
  if (!IsSplit(input) || !order) return std::nullopt;
  for (size_t i = 0; i < order->size(); ++i) {
    if ((*order)[i] != input.layout.axis) continue;
    RuleAnswer answer = AllReplicated(question);
    answer.inputs[0] = input.layout;
    answer.outputs[0] = Layout::Split(static_cast<int>(i));
    return answer;
  }
  return std::nullopt;
}

// The operands of a product and what a split of each of their last two axes means.
struct Product {
  size_t left = 0;
  size_t right = 0;
  int left_terms = 0;  // axis of the left operand that is summed over
  int right_terms = 0;
  int columns = 0;  // axis of the right operand that is the last of the result
  std::optional<size_t> bias;
  int rank = 0;  // of the result
};

std::optional<Product> ProductOf(const RuleQuestion& question) {
  const ProductTrait& trait = *question.op.product;
  const int left = question.node.FindInput(trait.left);
  const int right = question.node.FindInput(trait.right);
  if (left < 0 || right < 0) return std::nullopt;
  Product product;
  product.left = static_cast<size_t>(left);
  product.right = static_cast<size_t>(right);
  const int left_rank = question.inputs[product.left].type.shape.rank();
  const int right_rank = question.inputs[product.right].type.shape.rank();
  if (left_rank < 2 || right_rank < 2) return std::nullopt;
  const bool left_turned = question.node.BoolAttr(trait.left_transposed, false);
  const bool right_turned = question.node.BoolAttr(trait.right_transposed, false);
  product.left_terms = left_rank - (left_turned ? 2 : 1);
  product.right_terms = right_rank - (right_turned ? 1 : 2);
  product.columns = right_rank - (right_turned ? 2 : 1);
  product.rank = question.outputs[0].shape.rank();
  const int bias = trait.bias.empty() ? -1 : question.node.FindInput(trait.bias);
  if (bias >= 0 && question.inputs[static_cast<size_t>(bias)].connected) {
    product.bias = static_cast<size_t>(bias);
  }
  return product;
}

// Megatron's columns: each rank computes some columns of the result.
Answer ColumnRule(const RuleQuestion& question, const Product& product) {
  const RuleInput& weight = question.inputs[product.right];
  if (weight.type.shape[product.columns] % question.ranks != 0) return std::nullopt;
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[product.right] = Layout::Split(product.columns);
  if (product.bias) {
    const RuleInput& bias = question.inputs[*product.bias];
    if (bias.known == nullptr) return std::nullopt;
    answer.inputs[*product.bias] = Layout::Split(bias.type.shape.rank() - 1);
  }
  answer.outputs[0] = Layout::Split(product.rank - 1);
  return answer;
}

// Megatron's rows: each rank has some terms of every sum.
Answer RowRule(const RuleQuestion& question, const Product& product) {
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[product.left] = Layout::Split(product.left_terms);
  answer.inputs[product.right] = Layout::Split(product.right_terms);
  if (product.bias) {
    if (question.inputs[*product.bias].known == nullptr) return std::nullopt;
    answer.inputs[*product.bias] = Layout::Partial();
  }
  answer.outputs[0] = Layout::Partial();
  return answer;
}

// Axes before the last two: heads, for the products of attention.
Answer BatchRule(const RuleQuestion& question, const Product& product, int from_end) {
  RuleAnswer answer = AllReplicated(question);
  for (const size_t side : {product.left, product.right}) {
    const RuleInput& input = question.inputs[side];
    const int axis = input.type.shape.rank() - from_end;
    if (axis < 0 || input.type.shape[axis] == 1) continue;
    if (!IsSplit(input) && input.known == nullptr) return std::nullopt;
    if (IsSplit(input) && input.layout.axis != axis) return std::nullopt;
    answer.inputs[side] = Layout::Split(axis);
  }
  answer.outputs[0] = Layout::Split(product.rank - from_end);
  return answer;
}

Answer ProductRule(const RuleQuestion& question) {
  const std::optional<Product> product = ProductOf(question);
  if (!product) return std::nullopt;
  const RuleInput& left = question.inputs[product->left];
  const RuleInput& right = question.inputs[product->right];
  if (!IsSplit(left) && !IsSplit(right)) {
    return right.known == nullptr || left.known != nullptr ? std::nullopt
                                                           : ColumnRule(question, *product);
  }
  const RuleInput& split = IsSplit(left) ? left : right;
  const int from_end = split.type.shape.rank() - split.layout.axis;
  if (from_end > 2) return BatchRule(question, *product, from_end);
  const bool left_fits =
      left.known != nullptr || (IsSplit(left) && left.layout.axis == product->left_terms);
  const bool right_fits =
      right.known != nullptr || (IsSplit(right) && right.layout.axis == product->right_terms);
  return left_fits && right_fits ? RowRule(question, *product) : std::nullopt;
}

// A slice with a negative stride keeps the size of an axis and not its order.
bool Reverses(const RuleQuestion& question) {
  const int at = question.node.FindInput("strides");
  if (at < 0 || !question.inputs[static_cast<size_t>(at)].connected) return false;
  const Tensor* known = question.inputs[static_cast<size_t>(at)].known;
  if (known == nullptr) return true;
  const std::vector<int64_t> strides = IntsOf(*known);
  return std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride < 1; });
}

// Operators that work along some axes: the split one must be another.
Answer AlongRule(const RuleQuestion& question, const SplitFacts& facts) {
  const RuleInput& data = question.inputs[0];
  if (!IsSplit(data)) return std::nullopt;
  const int rank = data.type.shape.rank();
  const int axis = data.layout.axis;
  std::vector<int64_t> worked;
  if (!facts.axes_port.empty() || !facts.axes_attr.empty()) {
    const auto axes = IntsAt(question, facts.axes_port, facts.axes_attr, facts.default_axis);
    if (!axes) return std::nullopt;
    worked = *axes;
  }
  int removed = 0;
  const bool keeps = !facts.reduces || question.node.BoolAttr("keep_dims", false);
  for (const int64_t given : worked) {
    const int64_t at = given < 0 ? given + rank : given;
    if (at == axis) return std::nullopt;
    if (!keeps && at < axis) ++removed;
  }
  const Shape& to = question.outputs[0].shape;
  int out_axis = axis - removed;
  if (worked.empty()) out_axis = to.rank() - (rank - axis);  // sizes count from the last one
  if (out_axis < 0 || out_axis >= to.rank() || Reverses(question)) return std::nullopt;
  if (to[out_axis] != data.type.shape[axis]) return std::nullopt;
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[0] = data.layout;
  const int axes_at = facts.axes_port.empty() ? -1 : question.node.FindInput(facts.axes_port);
  for (size_t i = 1; i < question.inputs.size(); ++i) {
    const RuleInput& input = question.inputs[i];
    const bool piece = facts.many && static_cast<int>(i) != axes_at;
    if (!piece && IsSplit(input)) return std::nullopt;
    if (!piece || !input.connected) continue;
    if (input.known == nullptr && input.layout != data.layout) return std::nullopt;
    answer.inputs[i] = data.layout;
  }
  answer.outputs[0] = Layout::Split(out_axis);
  return answer;
}

}  // namespace

std::string ToText(const Layout& layout) {
  switch (layout.spread) {
    case Spread::kReplicated:
      return "replicated";
    case Spread::kSplit:
      return fmt::format("split along axis {}", layout.axis);
    case Spread::kPartial:
      return "partial sum";
  }
  return "";
}

Result<std::optional<RuleAnswer>> ApplyRule(const RuleQuestion& question) {
  if (question.op.product) return ProductRule(question);
  const bool any = std::any_of(question.inputs.begin(), question.inputs.end(), IsSplit);
  if (!any) return Answer(AllReplicated(question));
  if (question.op.view) return ViewRule(question);
  if (question.op.elementwise) return ElementwiseRule(question);
  if (!question.op.permutation.empty()) return PermutationRule(question);
  const SplitFacts* facts = SplitFactsOf(question.node.type);
  return facts == nullptr ? Answer() : AlongRule(question, *facts);
}

}  // namespace npumesh
