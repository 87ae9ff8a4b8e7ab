// Pieces follow the letters of an operator's axes: what has the letter along which an input is
// split is split along it, what lacks it is whole.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/shard/rule_parts.h"
#include "graph/shard/rules.h"

namespace npumesh {
namespace {

// Products of so many columns, and tables of so many rows, for each rank are split even if they
// have to be padded.
constexpr int64_t kWide = 256;

constexpr char kDifferent[] = "its operands are split in different ways";

std::optional<int> AxisWith(const std::vector<BoundAxis>& axes, int letter) {
  const auto found = std::ranges::find(axes, letter, &BoundAxis::letter);
  if (found == axes.end()) return std::nullopt;
  return static_cast<int>(found - axes.begin());
}

// The layout of each of the parts into which the split axis falls, whose blocks are the parts or
// smaller; empty: they are not.
std::vector<ShardLayout> LayoutsOfParts(const ShardLayout& data,
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
  return block == data.blocks.size() ? layouts : std::vector<ShardLayout>();
}

class Letters {
 public:
  Letters(const RuleQuestion& question, BoundAxes bound)
      : question_(question), bound_(std::move(bound)), inputs_(question.inputs.size()) {
    const OpContext& context = question.context;
    for (int slot = 0; slot < context.slots(); ++slot) {
      if (!context.has(slot)) continue;
      inputs_[static_cast<size_t>(context.input_index(slot))] =
          bound_.inputs[static_cast<size_t>(slot)];
    }
  }

  // An input is split.
  RuleOutcome Follow();
  // Nothing is split yet: columns of a weight, and rows of a table of words, may be.
  RuleOutcome Begin() const;

 private:
  const Axes& axes() const { return question_.op.axes; }
  const BoundLetter& letter() const { return bound_.letters[static_cast<size_t>(letter_)]; }
  RuleOutcome FindLetter();
  RuleOutcome Pieces(int letter, ShardLayout pieces) const;
  RuleOutcome Terms() const;
  RuleOutcome Parts(size_t input, const BoundAxis& axis) const;
  RuleOutcome LookedUpParts() const;
  RuleOutcome Columns() const;
  RuleOutcome Rows() const;
  RuleOutcome Table(size_t table) const;
  std::vector<int64_t> SizesOfParts(const BoundAxis& axis, int64_t size) const;

  const RuleQuestion& question_;
  const BoundAxes bound_;
  std::vector<std::vector<BoundAxis>> inputs_;  // by position in Node::inputs
  // What the split inputs have in common.
  int letter_ = -1;
  size_t first_ = 0;  // input that is split
  ShardLayout pieces_;
};

// Sets what the split inputs have in common. An outcome with a reason: nothing.
RuleOutcome Letters::FindLetter() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const RuleInput& input = question_.inputs[i];
    if (!IsSplit(input)) continue;
    if (inputs_[i].empty()) return Whole("its places are split");
    const int mine = inputs_[i][static_cast<size_t>(input.layout.axis)].letter;
    if (mine < 0) return Whole(kDifferent);
    if (letter_ < 0) {
      letter_ = mine;
      first_ = i;
      pieces_ = input.layout;
      continue;
    }
    const bool same = pieces_.pieces == input.layout.pieces || pieces_.blocks.empty();
    if (letter_ != mine || pieces_.blocks != input.layout.blocks || !same) {
      return Whole(kDifferent);
    }
    pieces_.pieces = std::lcm(pieces_.pieces, input.layout.pieces);
  }
  return {};
}

RuleOutcome Letters::Follow() {
  if (RuleOutcome found = FindLetter(); !found.why.empty()) return found;
  const int at = question_.inputs[first_].layout.axis;
  const BoundAxis& axis = inputs_[first_][static_cast<size_t>(at)];
  const bool looked_up = axes().looked_up() != nullptr;
  if (letter().need == AxisNeed::kPositions && looked_up) return LookedUpParts();
  if (letter().need == AxisNeed::kSum) return Terms();
  const bool carries = letter().need == AxisNeed::kPlace ||
                       (letter().need == AxisNeed::kUnchanged && !letter().changes);
  if (!carries) return Whole(fmt::format("it works along axis {}", at));
  if (axis.joined || axis.times > 1) return Parts(first_, axis);
  ShardLayout pieces = pieces_;
  // Heads of a product: all ranks have some, also if neighbours have the same keys and values.
  const bool all = axes().product() && letter().group && pieces.blocks.empty();
  if (all && letter().size % question_.ranks == 0) pieces.pieces = question_.ranks;
  return Pieces(letter_, pieces);
}

// Everything that has the letter in pieces.
RuleOutcome Letters::Pieces(int letter, ShardLayout pieces) const {
  const BoundLetter& mine = bound_.letters[static_cast<size_t>(letter)];
  if (pieces.blocks.empty() && (mine.size + pieces.padding) % pieces.pieces != 0) {
    return Whole("unequal pieces");
  }
  RuleAnswer answer = AllReplicated(question_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::optional<int> axis = AxisWith(inputs_[i], letter);
    if (!axis || question_.inputs[i].type.shape[*axis] != mine.size) continue;
    const std::optional<ShardLayout> layout = AsPieces(question_.inputs[i], *axis, pieces);
    if (!layout) return Whole(kDifferent);
    answer.inputs[i] = *layout;
  }
  for (size_t i = 0; i < question_.outputs.size(); ++i) {
    const std::vector<BoundAxis>& axes_of_output = bound_.outputs[i];
    const std::optional<int> axis = AxisWith(axes_of_output, letter);
    if (axis && axes_of_output[static_cast<size_t>(*axis)].joined) {
      return Whole(fmt::format("it joins along axis {}", *axis));
    }
    if (!axis && axes().shape_query() && i == 0 && question_.outputs[0].shape.rank() == 1) {
      const auto size = static_cast<size_t>(question_.outputs[0].shape[0]);
      answer.growth.assign(size, 1);
      answer.growth[static_cast<size_t>(question_.inputs[first_].layout.axis)] = pieces.pieces;
      continue;
    }
    if (!axis) return Whole("it works along that axis");
    answer.outputs[i] = pieces;
    answer.outputs[i].axis = *axis;
    if (!ScaleSizes(question_, i, *axis, pieces.pieces, &answer)) {
      return Whole("its sizes are not known");
    }
  }
  return {std::move(answer), {}, {}};
}

// Megatron's rows: each rank has some terms of every sum.
RuleOutcome Letters::Terms() const {
  RuleAnswer answer = AllReplicated(question_);
  ShardLayout pieces = pieces_;
  pieces.pieces = question_.ranks;
  bool possible = letter().size % question_.ranks == 0;
  for (size_t i = 0; i < inputs_.size() && possible; ++i) {
    const std::optional<int> axis = AxisWith(inputs_[i], letter_);
    if (!axis) continue;
    const std::optional<ShardLayout> layout = AsPieces(question_.inputs[i], *axis, pieces);
    possible = layout.has_value();
    if (possible) answer.inputs[i] = *layout;
  }
  if (!possible) {
    return Whole(
        fmt::format("{} terms do not fall into {} equal pieces", letter().size, question_.ranks));
  }
  if (const auto bias = InputAt(question_, axes().product() ? axes().product()->bias : "")) {
    if (!question_.inputs[*bias].known) return Whole("its bias is not known");
    answer.inputs[*bias] = ShardLayout::Partial();
  }
  std::ranges::fill(answer.outputs, ShardLayout::Partial());
  return {std::move(answer), {}, {}};
}

std::vector<int64_t> Letters::SizesOfParts(const BoundAxis& axis, int64_t size) const {
  if (axis.times > 1)
    return std::vector<int64_t>(static_cast<size_t>(axis.times), size / axis.times);
  std::vector<int64_t> parts;
  for (size_t i = 0; i < question_.outputs.size(); ++i) {
    const std::optional<int> mine = AxisWith(bound_.outputs[i], letter_);
    parts.push_back(mine ? question_.outputs[i].shape[*mine] : 0);
  }
  return parts;
}

// The split axis of the input falls into parts, of which each rank needs its piece.
RuleOutcome Letters::Parts(size_t input, const BoundAxis& axis) const {
  const RuleInput& data = question_.inputs[input];
  const std::vector<int64_t> parts = SizesOfParts(axis, data.type.shape[data.layout.axis]);
  const std::vector<ShardLayout> layouts = LayoutsOfParts(data.layout, parts);
  if (data.layout.blocks.empty() || layouts.empty()) {
    if (axis.joined)
      return {{}, Wish{input, 0, parts, "it is cut into parts"}, "it cuts the split axis"};
    const std::string why = axis.times == 2 ? "it combines two halves" : "it combines parts";
    return {{}, Wish{input, 0, parts, why}, why};
  }
  const bool alike = std::ranges::count(layouts, layouts[0]) == std::ssize(layouts);
  if (!axis.joined && !alike) return Whole("its parts are split in different ways");
  RuleAnswer answer = AllReplicated(question_);
  answer.inputs[input] = data.layout;
  for (size_t i = 0; i < answer.outputs.size(); ++i) {
    answer.outputs[i] = layouts[axis.joined ? i : 0];
  }
  for (const AxisSizes& sizes : axes().sizes()) {
    answer.sizes =
        SizesAt(question_, sizes.name, std::vector<int64_t>(parts.size(), data.layout.pieces));
    if (!answer.sizes) return Whole("its sizes are not known");
  }
  return {std::move(answer), {}, {}};
}

// ---- lookups ----

// Few places that are known: parts of the split axis.
RuleOutcome Letters::LookedUpParts() const {
  const RuleInput& data = question_.inputs[first_];
  const std::optional<size_t> positions = InputAt(question_, letter().positions);
  const bool known = positions && question_.inputs[*positions].known;
  if (known && letter().size <= 3 && data.layout.blocks.empty()) {
    return {{},
            Wish{first_, 0, std::vector<int64_t>(static_cast<size_t>(letter().size), 1), "parts"},
            "it takes parts of the split axis"};
  }
  return Whole(fmt::format("it looks up along axis {}", data.layout.axis));
}

// Vocabulary: each rank has some rows of the table, the last one perhaps fewer.
RuleOutcome Letters::Table(size_t table) const {
  RuleAnswer answer = AllReplicated(question_);
  answer.inputs[table] = ShardLayout::Split(0, question_.ranks);
  const int64_t rest = question_.vocabulary % question_.ranks;
  if (rest != 0) answer.inputs[table].padding = question_.ranks - rest;
  answer.outputs[0] = ShardLayout::Partial();
  answer.rows_of_table = true;
  return {std::move(answer), {}, {}};
}

RuleOutcome Letters::Rows() const {
  RuleOutcome whole{AllReplicated(question_), {}, {}};
  const std::optional<size_t> table = InputAt(question_, axes().inputs()[0].port);
  const std::optional<size_t> positions = InputAt(question_, axes().looked_up()->positions);
  if (!table || !positions) return whole;
  const RuleInput &data = question_.inputs[*table], &at = question_.inputs[*positions];
  const bool words = data.known && !at.known && data.type.shape.rank() == 2 &&
                     at.type.shape.rank() > 0 && data.type.shape[0] == question_.vocabulary;
  const int first = inputs_[*table][0].letter;
  if (!words || bound_.letters[static_cast<size_t>(first)].need != AxisNeed::kPositions) {
    return whole;
  }
  const bool wide = question_.vocabulary >= kWide * question_.ranks;
  if (wide || question_.vocabulary % question_.ranks == 0) return Table(*table);
  whole.why = fmt::format("{} rows do not fall into {} equal pieces", question_.vocabulary,
                          question_.ranks);
  return whole;
}

// ---- products ----

// Megatron's columns: each rank computes some columns of the result.
RuleOutcome Letters::Columns() const {
  RuleOutcome whole{AllReplicated(question_), {}, {}};
  const std::optional<size_t> left = InputAt(question_, axes().product()->left);
  const std::optional<size_t> right = InputAt(question_, axes().product()->right);
  if (!left || !right || !question_.inputs[*right].known || question_.inputs[*left].known) {
    return whole;
  }
  const auto column = std::ranges::find_if(inputs_[*right], [&](const BoundAxis& axis) {
    if (axis.letter < 0) return false;
    const BoundLetter& mine = bound_.letters[static_cast<size_t>(axis.letter)];
    return mine.need == AxisNeed::kPlace && !mine.group;
  });
  const int pieces = question_.wished_pieces == 0 ? question_.ranks : question_.wished_pieces;
  if (column == inputs_[*right].end() || pieces == 1) return whole;
  const int64_t columns = bound_.letters[static_cast<size_t>(column->letter)].size;
  ShardLayout layout = ShardLayout::Split(0, pieces, question_.wished_blocks);
  const bool wished = question_.wished_pieces != 0 || !question_.wished_blocks.empty();
  if (columns % pieces != 0) {
    if (wished || columns < kWide * pieces) {
      whole.why = fmt::format("{} columns do not fall into {} equal pieces", columns, pieces);
      return whole;
    }
    layout.padding = pieces - columns % pieces;
  }
  return Pieces(column->letter, layout);
}

RuleOutcome Letters::Begin() const {
  return axes().product() ? Columns() : Rows();
}

// An input that is fed and of which the text does not say how it belongs to the others.
bool HasStranger(const RuleQuestion& question) {
  const OpContext& context = question.context;
  const Axes& axes = question.op.axes;
  return std::ranges::any_of(context.schema().inputs, [&](const PortSpec& port) {
    if (!context.has(port.name)) return false;
    const PortAxes* const known = axes.input(port.name);
    if (known == nullptr) return axes.product().has_value();
    return known->spread && context.in(port.name).shape.elements() != 1;
  });
}

}  // namespace

RuleOutcome AxesRule(const RuleQuestion& question) {
  const bool any = AnySplit(question);
  if (HasStranger(question)) {
    return any ? Whole("it is of a rare form") : RuleOutcome{AllReplicated(question), {}, {}};
  }
  Result<BoundAxes> bound = BindAxes(question.op.axes, question.context, KnownValues(question));
  if (!bound.ok()) {
    return any ? Whole(std::string(bound.status().message()))
               : RuleOutcome{AllReplicated(question), {}, {}};
  }
  Letters letters(question, *std::move(bound));
  return any ? letters.Follow() : letters.Begin();
}

}  // namespace npumesh
