#include "graph/shard/layout_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/shard/heads_rule.h"
#include "graph/shard/rule_parts.h"

namespace npumesh {
namespace {

using Outcome = RuleOutcome;

// The axes that the trait forbids, in [0, rank). Nullopt: they are not known.
std::optional<std::vector<int>> WorkedAxes(const RuleQuestion& question, const SplitTrait& trait,
                                           int rank) {
  std::vector<int> worked;
  int last = trait.last;
  if (!trait.trailing.empty()) {
    const std::optional<size_t> input = InputAt(question, trait.trailing);
    if (!input) return std::nullopt;
    last = question.inputs[*input].type.shape.rank();
  }
  for (int i = std::max(0, rank - last); i < rank; ++i) worked.push_back(i);
  int first = trait.first;
  if (!trait.leading.empty()) {
    const std::optional<size_t> input = InputAt(question, trait.leading);
    if (!input || question.inputs[*input].type.shape.rank() == 0) return std::nullopt;
    first = static_cast<int>(question.inputs[*input].type.shape.dims().back());
  }
  for (int i = 0; i < std::min(first, rank); ++i) worked.push_back(i);
  if (trait.axes.empty()) return worked;
  const auto axes = IntsAt(question, trait.axes);
  if (!axes) return std::nullopt;
  for (const int64_t axis : *axes) {
    worked.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  }
  return worked;
}

bool Has(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// ---- element by element, with NumPy's broadcasting ----

Outcome ElementwiseRule(const RuleQuestion& question, const SplitTrait& trait) {
  const std::optional<Common> common = CommonSplit(question);
  if (!common) return Whole("its operands are split in different ways");
  const Shape& to = question.outputs[0].shape;
  const int out_axis = to.rank() - common->from_end;
  const auto worked = WorkedAxes(question, trait, to.rank());
  if (out_axis < 0 || !worked || Has(*worked, out_axis)) return Whole("it works along that axis");
  const int64_t size = to[out_axis];
  if (size % common->pieces != 0) return Whole("unequal pieces");
  RuleAnswer answer = AllReplicated(question);
  for (size_t i = 0; i < question.inputs.size(); ++i) {
    const RuleInput& input = question.inputs[i];
    const int axis = input.type.shape.rank() - common->from_end;
    if (!input.connected || axis < 0 || input.type.shape[axis] == 1) continue;
    if (input.type.shape[axis] != size) return Whole("its operands have other sizes");
    const std::optional<ShardLayout> layout = AsPieces(input, axis, *common);
    if (!layout) return Whole("its operands are split in different ways");
    answer.inputs[i] = *layout;
  }
  for (size_t i = 0; i < question.outputs.size(); ++i) {
    if (question.outputs[i].shape != to) return Whole("its outputs have other sizes");
    answer.outputs[i] = ShardLayout::Split(out_axis, common->pieces, common->blocks);
  }
  return {answer, {}, {}};
}

// Operators that say no more than that they are element-wise: without broadcasting.
bool PlainElementwise(const RuleQuestion& question) {
  if (!question.op.elementwise) return false;
  return std::all_of(question.inputs.begin(), question.inputs.end(), [&](const RuleInput& input) {
    return !input.connected || input.type.shape == question.outputs[0].shape ||
           input.type.shape.elements() == 1;
  });
}

// ---- views ----

// Divisors of sizes of which element `axis` is split.
std::vector<int64_t> DivisorsOf(int rank, int axis, int pieces) {
  std::vector<int64_t> divisors(static_cast<size_t>(rank), 1);
  divisors[static_cast<size_t>(axis)] = pieces;
  return divisors;
}

// The port or, in the form with attributes, the attribute that has `count` sizes.
std::optional<ScaledSizes> SizesAt(const RuleQuestion& question, std::string_view name,
                                   std::vector<int64_t> divisors) {
  const auto count = static_cast<int64_t>(divisors.size());
  if (const std::optional<size_t> at = InputAt(question, name)) {
    const Shape& sizes = question.inputs[*at].type.shape;
    if (sizes.rank() != 1 || sizes[0] != count) return std::nullopt;
    return ScaledSizes{*at, std::move(divisors)};
  }
  const auto sizes = IntsOfAttr(question, name);
  if (!sizes || static_cast<int64_t>(sizes->size()) != count) return std::nullopt;
  return ScaledSizes{question.node.inputs.size(), std::move(divisors), std::string(name)};
}

// The axis, not one of size 1, that has this many elements before it; nullopt: no such axis.
std::optional<int> AxisAfter(const Shape& shape, int64_t before) {
  int64_t passed = 1;
  for (int i = 0; before != 0 && i < shape.rank(); ++i) {
    if (passed == before && shape[i] != 1) return i;
    passed *= shape[i];
  }
  return std::nullopt;
}

// The axis of `to` that begins with the elements of `axis` of `from`, where both are one row of
// elements; nullopt: none does, because axes before it are merged with it.
std::optional<int> AxisOfView(const Shape& from, int axis, const Shape& to) {
  int64_t before = 1;
  for (int i = 0; i < axis; ++i) before *= from[i];
  return AxisAfter(to, before);
}

// Adds the sizes that the view is told, if it is told them. False: they cannot be changed.
bool ScaleSizes(const RuleQuestion& question, int axis, int pieces, RuleAnswer* answer) {
  if (!question.op.split || question.op.split->sizes.empty()) return true;
  answer->sizes = SizesAt(question, question.op.split->sizes,
                          DivisorsOf(question.outputs[0].shape.rank(), axis, pieces));
  return answer->sizes.has_value();
}

Outcome ViewRule(const RuleQuestion& question) {
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
  if (!ScaleSizes(question, axis, layout.pieces, &answer)) return Whole("its sizes are not known");
  return {answer, {}, {}};
}

Outcome PermutationRule(const RuleQuestion& question) {
  const auto order = IntsAt(question, question.op.permutation);
  const RuleInput& input = question.inputs[0];
  if (!IsSplit(input) || !order) return Whole("its permutation is not known");
  const int rank = input.type.shape.rank();
  for (size_t i = 0; i < order->size(); ++i) {
    if (((*order)[i] + rank) % rank != input.layout.axis) continue;
    RuleAnswer answer = AllReplicated(question);
    answer.inputs[0] = input.layout;
    answer.outputs[0] = input.layout;
    answer.outputs[0].axis = static_cast<int>(i);
    return {answer, {}, {}};
  }
  return Whole("its permutation is not known");
}

// ---- products ----

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
  const std::optional<size_t> left = InputAt(question, trait.left);
  const std::optional<size_t> right = InputAt(question, trait.right);
  if (!left || !right) return std::nullopt;
  Product product;
  product.left = *left;
  product.right = *right;
  const int left_rank = question.inputs[*left].type.shape.rank();
  const int right_rank = question.inputs[*right].type.shape.rank();
  if (left_rank < 2 || right_rank < 2) return std::nullopt;
  const bool left_turned = question.node.BoolAttr(trait.left_transposed, false);
  const bool right_turned = question.node.BoolAttr(trait.right_transposed, false);
  product.left_terms = left_rank - (left_turned ? 2 : 1);
  product.right_terms = right_rank - (right_turned ? 1 : 2);
  product.columns = right_rank - (right_turned ? 2 : 1);
  product.rank = question.outputs[0].shape.rank();
  if (!trait.bias.empty()) product.bias = InputAt(question, trait.bias);
  for (size_t i = 0; i < question.inputs.size(); ++i) {
    const bool mine = i == *left || i == *right || (product.bias && i == *product.bias);
    if (question.inputs[i].connected && !mine) return std::nullopt;
  }
  return product;
}

// Megatron's columns: each rank computes some columns of the result.
Outcome Columns(const RuleQuestion& question, const Product& product, const ShardLayout& columns) {
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[product.right] = columns;
  answer.outputs[0] = columns;
  answer.outputs[0].axis = product.rank - 1;
  if (product.bias) {
    const RuleInput& bias = question.inputs[*product.bias];
    const bool plain = columns.blocks.empty() && columns.padding == 0;
    if (!bias.known && !plain) return Whole("its bias is not known");
    answer.inputs[*product.bias] = columns;
    answer.inputs[*product.bias].axis = bias.type.shape.rank() - 1;
  }
  return {answer, {}, {}};
}

// Products of so many columns, and tables of so many rows, for each rank are split even if they
// have to be padded.
constexpr int64_t kWide = 256;

// A product of whole values and a weight.
Outcome ColumnsOfWeight(const RuleQuestion& question, const Product& product) {
  const RuleInput& weight = question.inputs[product.right];
  const int pieces = question.wished_pieces == 0 ? question.ranks : question.wished_pieces;
  Outcome whole{AllReplicated(question), {}, {}};
  if (pieces == 1) return whole;
  const int64_t columns = weight.type.shape[product.columns];
  const bool wished = question.wished_pieces != 0 || !question.wished_blocks.empty();
  if (columns % pieces != 0 && columns >= kWide * pieces && !wished) {
    ShardLayout padded = ShardLayout::Split(product.columns, pieces);
    padded.padding = pieces - columns % pieces;
    return Columns(question, product, padded);
  }
  if (columns % pieces != 0) {
    whole.why = fmt::format("{} columns do not fall into {} equal pieces", columns, pieces);
    return whole;
  }
  return Columns(question, product,
                 ShardLayout::Split(product.columns, pieces, question.wished_blocks));
}

// Megatron's rows: each rank has some terms of every sum.
Outcome RowRule(const RuleQuestion& question, const Product& product) {
  const RuleInput& left = question.inputs[product.left];
  const RuleInput& right = question.inputs[product.right];
  const int64_t terms = left.type.shape[product.left_terms];
  std::vector<int64_t> blocks;
  for (const RuleInput* side : {&left, &right}) {
    if (IsSplit(*side) && !side->layout.blocks.empty()) blocks = side->layout.blocks;
  }
  const Common common{0, question.ranks, blocks};
  const std::optional<ShardLayout> left_pieces = AsPieces(left, product.left_terms, common);
  const std::optional<ShardLayout> right_pieces = AsPieces(right, product.right_terms, common);
  if (terms % question.ranks != 0 || !left_pieces || !right_pieces) {
    return Whole(fmt::format("{} terms do not fall into {} equal pieces", terms, question.ranks));
  }
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[product.left] = *left_pieces;
  answer.inputs[product.right] = *right_pieces;
  if (product.bias) {
    if (!question.inputs[*product.bias].known) return Whole("its bias is not known");
    answer.inputs[*product.bias] = ShardLayout::Partial();
  }
  answer.outputs[0] = ShardLayout::Partial();
  return {answer, {}, {}};
}

// Axes before the last two: heads, for the products of attention.
Outcome BatchRule(const RuleQuestion& question, const Product& product, Common common) {
  const int out_axis = product.rank - common.from_end;
  const int64_t size = question.outputs[0].shape[out_axis];
  if (common.blocks.empty() && size % question.ranks == 0) common.pieces = question.ranks;
  RuleAnswer answer = AllReplicated(question);
  for (const size_t side : {product.left, product.right}) {
    const RuleInput& input = question.inputs[side];
    const int axis = input.type.shape.rank() - common.from_end;
    if (axis < 0 || input.type.shape[axis] == 1) continue;
    const std::optional<ShardLayout> layout = AsPieces(input, axis, common);
    if (!layout) return Whole("its operands are split in different ways");
    answer.inputs[side] = *layout;
  }
  answer.outputs[0] = ShardLayout::Split(out_axis, common.pieces, common.blocks);
  return {answer, {}, {}};
}

Outcome ProductRule(const RuleQuestion& question) {
  const std::optional<Product> product = ProductOf(question);
  const bool any = std::any_of(question.inputs.begin(), question.inputs.end(), IsSplit);
  if (!product)
    return any ? Whole("it is a product of a rare form") : Outcome{AllReplicated(question), {}, {}};
  const RuleInput& left = question.inputs[product->left];
  const RuleInput& right = question.inputs[product->right];
  if (!any) {
    return right.known && !left.known ? ColumnsOfWeight(question, *product)
                                      : Outcome{AllReplicated(question), {}, {}};
  }
  const bool left_terms = IsSplit(left) && left.layout.axis == product->left_terms;
  const bool right_terms = IsSplit(right) && right.layout.axis == product->right_terms;
  if (left_terms || right_terms) return RowRule(question, *product);
  const std::optional<Common> common = CommonSplit(question);
  if (common && common->from_end > 2) return BatchRule(question, *product, *common);
  if (IsSplit(left) && IsSplit(right)) return Whole("its operands are split in different ways");
  if (IsSplit(right)) return Columns(question, *product, right.layout);
  if (!IsSplit(left)) return Whole("only its bias is split");
  RuleAnswer answer = AllReplicated(question);  // rows of the result
  answer.inputs[product->left] = left.layout;
  answer.outputs[0] = left.layout;
  answer.outputs[0].axis = product->rank - 2;
  return {answer, {}, {}};
}

// ---- what split traits say ----

// A slice with a negative stride keeps the size of an axis and not its order.
bool Reverses(const RuleQuestion& question) {
  if (question.node.FindInput("strides") < 0) return false;
  const auto strides = IntsAt(question, "strides");
  return !strides ||
         std::any_of(strides->begin(), strides->end(), [](int64_t stride) { return stride < 1; });
}

// Operators that work along some axes: the split one must be another.
Outcome AlongRule(const RuleQuestion& question, const SplitTrait& trait) {
  const RuleInput& data = question.inputs[0];
  const std::optional<Common> common = CommonSplit(question);
  if (!IsSplit(data) || !common) return Whole("its operands are split in different ways");
  const int axis = data.layout.axis;
  const auto worked = WorkedAxes(question, trait, data.type.shape.rank());
  if (!worked || Has(*worked, axis)) return Whole(fmt::format("it works along axis {}", axis));
  const bool drops = trait.reduces && !question.node.BoolAttr("keep_dims", false);
  if (trait.reduces && worked->empty()) return Whole("its axes are not known");
  const auto before =
      std::count_if(worked->begin(), worked->end(), [&](int at) { return at < axis; });
  const int out_axis = axis - (drops ? static_cast<int>(before) : 0);
  if (Reverses(question)) return Whole("it turns the order");
  RuleAnswer answer = AllReplicated(question);
  for (size_t i = 0; i < question.inputs.size(); ++i) {
    const RuleInput& input = question.inputs[i];
    if (!input.connected || input.type.shape != data.type.shape) continue;
    const std::optional<ShardLayout> layout = AsPieces(input, axis, *common);
    if (!layout) return Whole("its operands are split in different ways");
    answer.inputs[i] = *layout;
  }
  for (size_t i = 0; i < question.outputs.size(); ++i) {
    const Shape& to = question.outputs[i].shape;
    const bool ranks_fit = drops || to.rank() == data.type.shape.rank();
    if (!ranks_fit || out_axis >= to.rank() || to[out_axis] != data.type.shape[axis]) {
      return Whole(fmt::format("it works along axis {}", axis));
    }
    answer.outputs[i] = ShardLayout::Split(out_axis, common->pieces, common->blocks);
  }
  if (!ScaleSizes(question, axis, common->pieces, &answer)) return Whole("its sizes are not known");
  return {answer, {}, {}};
}

Outcome JoinRule(const RuleQuestion& question, const SplitTrait& trait) {
  const std::optional<Common> common = CommonSplit(question);
  if (!common) return Whole("its operands are split in different ways");
  const Shape& to = question.outputs[0].shape;
  const int axis = to.rank() - common->from_end;
  const auto worked = WorkedAxes(question, trait, to.rank());
  if (!worked || Has(*worked, axis)) return Whole(fmt::format("it joins along axis {}", axis));
  const std::optional<size_t> axis_port = InputAt(question, trait.axes);
  RuleAnswer answer = AllReplicated(question);
  for (size_t i = 0; i < question.inputs.size(); ++i) {
    const RuleInput& input = question.inputs[i];
    if (!input.connected || (axis_port && i == *axis_port)) continue;
    const std::optional<ShardLayout> layout = AsPieces(input, axis, *common);
    if (!layout || input.type.shape[axis] != to[axis]) {
      return Whole("its operands are split in different ways");
    }
    answer.inputs[i] = *layout;
  }
  answer.outputs[0] = ShardLayout::Split(axis, common->pieces, common->blocks);
  return {answer, {}, {}};
}

// The layout of each output of a cut along the split axis, whose blocks are the parts or smaller;
// empty: they are not.
std::vector<ShardLayout> LayoutsOfParts(const RuleQuestion& question, const ShardLayout& data,
                                        const std::vector<int64_t>& parts) {
  std::vector<ShardLayout> layouts;
  size_t block = 0;
  for (const int64_t part : parts) {
    std::vector<int64_t> inside;
    int64_t sum = 0;
    while (sum < part && block < data.blocks.size()) {
      inside.push_back(data.blocks[block]);
      sum += data.blocks[block++];
    }
    if (sum != part) return {};
    if (inside.size() < 2) inside.clear();
    layouts.push_back(ShardLayout::Split(data.axis, data.pieces, std::move(inside)));
  }
  return block == data.blocks.size() && layouts.size() == question.outputs.size()
             ? layouts
             : std::vector<ShardLayout>();
}

Outcome PartsRule(const RuleQuestion& question, const SplitTrait& trait) {
  const std::optional<size_t> at = InputAt(question, trait.data);
  if (!at || !IsSplit(question.inputs[*at])) return Whole("its sizes are not known");
  const RuleInput& data = question.inputs[*at];
  const int axis = data.layout.axis;
  const auto worked = WorkedAxes(question, trait, data.type.shape.rank());
  if (!worked) return Whole("its axis is not known");
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[*at] = data.layout;
  if (!Has(*worked, axis)) {
    std::fill(answer.outputs.begin(), answer.outputs.end(), data.layout);
    return {answer, {}, {}};
  }
  std::vector<int64_t> parts;
  for (const TensorType& output : question.outputs) parts.push_back(output.shape[axis]);
  answer.outputs = LayoutsOfParts(question, data.layout, parts);
  if (data.layout.blocks.empty() || answer.outputs.empty()) {
    return {{}, Wish{*at, 0, parts, "it is cut into parts"}, "it cuts the split axis"};
  }
  if (!trait.sizes.empty()) {
    answer.sizes =
        SizesAt(question, trait.sizes, std::vector<int64_t>(parts.size(), data.layout.pieces));
    if (!answer.sizes) return Whole("its sizes are not known");
  }
  return {answer, {}, {}};
}

Outcome HalvesRule(const RuleQuestion& question, const SplitTrait& trait) {
  const RuleInput& data = question.inputs[0];
  const auto worked = WorkedAxes(question, trait, data.type.shape.rank());
  if (!IsSplit(data) || !worked) return Whole("its axis is not known");
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[0] = data.layout;
  answer.outputs[0] = data.layout;
  if (!Has(*worked, data.layout.axis)) return {answer, {}, {}};
  const std::vector<int64_t> halves(2, data.type.shape[data.layout.axis] / 2);
  if (data.layout.blocks != halves) {
    return {{}, Wish{0, 0, halves, "it combines two halves"}, "it combines two halves"};
  }
  answer.outputs[0].blocks.clear();
  return {answer, {}, {}};
}

// Vocabulary: each rank has some rows of the table, the last one perhaps fewer.
Outcome TableRule(const RuleQuestion& question, size_t table) {
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[table] = ShardLayout::Split(0, question.ranks);
  const int64_t rest = question.vocabulary % question.ranks;
  if (rest != 0) answer.inputs[table].padding = question.ranks - rest;
  answer.outputs[0] = ShardLayout::Partial();
  answer.rows_of_table = true;
  return {answer, {}, {}};
}

Outcome LookupRule(const RuleQuestion& question, const SplitTrait& trait) {
  const std::optional<size_t> table = InputAt(question, trait.data);
  const std::optional<size_t> positions = InputAt(question, trait.positions);
  if (!table || !positions || question.node.IntAttr(trait.batch, 0) != 0) {
    return Whole("it is a lookup of a rare form");
  }
  const RuleInput& data = question.inputs[*table];
  const RuleInput& at = question.inputs[*positions];
  const auto axes = trait.axes.empty() ? std::vector<int64_t>{0} : IntsAt(question, trait.axes);
  if (!axes || axes->size() != 1) return Whole("its axis is not known");
  const int rank = data.type.shape.rank();
  const int axis = static_cast<int>((*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0]);
  const int more = at.type.shape.rank() - 1;
  RuleAnswer answer = AllReplicated(question);
  if (!IsSplit(data) && !IsSplit(at)) {
    const bool table_of_words = data.known && !at.known && axis == 0 && rank == 2 && more >= 0 &&
                                data.type.shape[0] == question.vocabulary;
    if (!table_of_words) return {answer, {}, {}};
    const bool wide = question.vocabulary >= kWide * question.ranks;
    if (wide || question.vocabulary % question.ranks == 0) return TableRule(question, *table);
    return {answer,
            {},
            fmt::format("{} rows do not fall into {} equal pieces", question.vocabulary,
                        question.ranks)};
  }
  if (IsSplit(data) && IsSplit(at)) return Whole("its operands are split in different ways");
  if (IsSplit(at)) {
    answer.inputs[*positions] = at.layout;
    answer.outputs[0] = at.layout;
    answer.outputs[0].axis += axis;
    return {answer, {}, {}};
  }
  if (data.layout.axis == axis) {
    const int64_t size = data.type.shape[axis];
    if (at.known && size <= 3 && data.layout.blocks.empty()) {
      return {{},
              Wish{*table, 0, std::vector<int64_t>(static_cast<size_t>(size), 1), "parts"},
              "it takes parts of the split axis"};
    }
    return Whole(fmt::format("it looks up along axis {}", axis));
  }
  answer.inputs[*table] = data.layout;
  answer.outputs[0] = data.layout;
  if (data.layout.axis > axis) answer.outputs[0].axis += more;
  return {answer, {}, {}};
}

Outcome ShapeRule(const RuleQuestion& question) {
  const RuleInput& input = question.inputs[0];
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[0] = input.layout;
  answer.growth.assign(static_cast<size_t>(input.type.shape.rank()), 1);
  answer.growth[static_cast<size_t>(input.layout.axis)] = input.layout.pieces;
  return {answer, {}, {}};
}

Outcome BroadcastRule(const RuleQuestion& question) {
  const RuleInput& input = question.inputs[0];
  if (!IsSplit(input)) return Whole("its sizes are not known");
  const Shape& to = question.outputs[0].shape;
  const int axis = to.rank() - (input.type.shape.rank() - input.layout.axis);
  if (axis < 0 || to[axis] != input.type.shape[input.layout.axis]) return Whole("other sizes");
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[0] = input.layout;
  answer.outputs[0] = input.layout;
  answer.outputs[0].axis = axis;
  if (!ScaleSizes(question, axis, input.layout.pieces, &answer)) return Whole("unknown sizes");
  return {answer, {}, {}};
}

// Parts of a tensor are overwritten; what is written has the axes of the tensor, counted from the
// end.
Outcome UpdateRule(const RuleQuestion& question, const SplitTrait& trait) {
  const RuleInput& target = question.inputs[0];
  const std::optional<size_t> at = InputAt(question, trait.data);
  const std::optional<Common> common = CommonSplit(question);
  if (!at || !common) return Whole("its operands are split in different ways");
  const RuleInput& data = question.inputs[*at];
  const int rank = target.type.shape.rank();
  const int axis = rank - common->from_end;
  const int data_axis = data.type.shape.rank() - common->from_end;
  const auto worked = WorkedAxes(question, trait, rank);
  if (axis < 0 || !worked || Has(*worked, axis)) {
    return Whole(fmt::format("it works along axis {}", axis));
  }
  if (data_axis < 0 || data.type.shape[data_axis] != target.type.shape[axis]) {
    return Whole("what it writes has other sizes");
  }
  const std::optional<ShardLayout> mine = AsPieces(target, axis, *common);
  const std::optional<ShardLayout> written = AsPieces(data, data_axis, *common);
  if (!mine || !written) return Whole("its operands are split in different ways");
  for (size_t i = 1; i < question.inputs.size(); ++i) {
    if (i != *at && IsSplit(question.inputs[i])) return Whole("its places are split");
  }
  RuleAnswer answer = AllReplicated(question);
  answer.inputs[0] = *mine;
  answer.inputs[*at] = *written;
  answer.outputs[0] = *mine;
  return {answer, {}, {}};
}

// Asks for as many pieces of what comes in as divide `parts`.
Outcome FewerPieces(const RuleQuestion& question, int parts) {
  const std::string why = fmt::format("{} parts of a row do not fall into equal pieces", parts);
  for (size_t i = 0; i < question.inputs.size(); ++i) {
    const int pieces = question.inputs[i].layout.pieces;
    if (!IsSplit(question.inputs[i]) || parts % pieces == 0) continue;
    return {{}, Wish{i, std::gcd(parts, pieces), {}, why}, why};
  }
  return Whole(why);
}

// Rows of tensors are copied into caches: a rank has a part of every row.
Outcome RowsRule(const RuleQuestion& question, const SplitTrait& trait) {
  const std::optional<size_t> places = InputAt(question, trait.positions);
  if (!places) return Whole("its places are not known");
  int pieces = 1;
  for (const RuleInput& input : question.inputs) {
    if (IsSplit(input)) pieces = std::lcm(pieces, input.layout.pieces);
  }
  RuleAnswer answer = AllReplicated(question);
  const int64_t count = question.inputs[*places].type.shape.elements();
  const std::vector<std::string_view> data = WordsIn(trait.data), caches = WordsIn(trait.caches);
  for (size_t i = 0; i < data.size() && i < question.outputs.size(); ++i) {
    const std::optional<size_t> rows = InputAt(question, data[i]);
    const std::optional<size_t> cache = InputAt(question, caches[i]);
    if (!rows || !cache) continue;
    const RuleInput &from = question.inputs[*rows], &to = question.inputs[*cache];
    const std::optional<int> begin = AxisAfter(from.type.shape, count);
    if (!begin) return Whole(fmt::format("its {} is no list of rows", data[i]));
    const int axis = trait.row_axis(question.context);
    const int64_t parts = std::gcd(from.type.shape[*begin], to.type.shape[axis]);
    if (parts % pieces != 0) return FewerPieces(question, static_cast<int>(parts));
    const std::optional<ShardLayout> mine = AsPieces(from, *begin, Common{0, pieces, {}});
    const std::optional<ShardLayout> theirs = AsPieces(to, axis, Common{0, pieces, {}});
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

Outcome TraitRule(const RuleQuestion& question, const SplitTrait& trait) {
  switch (trait.form) {
    case SplitForm::kElementwise:
      return ElementwiseRule(question, trait);
    case SplitForm::kAlong:
      return AlongRule(question, trait);
    case SplitForm::kJoin:
      return JoinRule(question, trait);
    case SplitForm::kParts:
      return PartsRule(question, trait);
    case SplitForm::kHalves:
      return HalvesRule(question, trait);
    case SplitForm::kLookup:
      return LookupRule(question, trait);
    case SplitForm::kShape:
      return ShapeRule(question);
    case SplitForm::kBroadcast:
      return BroadcastRule(question);
    case SplitForm::kHeads:
      return HeadsRule(question, trait);
    case SplitForm::kUpdate:
      return UpdateRule(question, trait);
    case SplitForm::kRows:
      return RowsRule(question, trait);
    case SplitForm::kFill:
      break;
  }
  return Whole("npumesh does not know how it carries pieces");
}

}  // namespace

std::vector<int64_t> ScaledSizes::Of(std::vector<int64_t> whole) const {
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] > 0) whole[i] /= divisors[i];
  }
  return whole;
}

RuleOutcome ApplyRule(const RuleQuestion& question) {
  const bool padded = std::any_of(question.inputs.begin(), question.inputs.end(),
                                  [](const RuleInput& input) { return input.layout.padding > 0; });
  if (padded && question.op.permutation.empty()) return Whole("its operand is padded");
  if (question.op.product) return ProductRule(question);
  const bool any = std::any_of(question.inputs.begin(), question.inputs.end(), IsSplit);
  const std::optional<SplitTrait>& trait = question.op.split;
  if (!any && !(trait && trait->form == SplitForm::kLookup))
    return {AllReplicated(question), {}, {}};
  const bool whole_bytes = std::all_of(
      question.outputs.begin(), question.outputs.end(),
      [](const TensorType& type) { return BitsOf(type.dtype) % 8 == 0 && type.shape.is_static(); });
  if (!whole_bytes) return Whole("its outputs have no whole bytes or open sizes");
  if (question.op.view) return ViewRule(question);
  if (!question.op.permutation.empty()) return PermutationRule(question);
  if (trait) return TraitRule(question, *trait);
  if (PlainElementwise(question)) return ElementwiseRule(question, SplitTrait());
  return Whole("npumesh does not know how it carries pieces");
}

}  // namespace npumesh
