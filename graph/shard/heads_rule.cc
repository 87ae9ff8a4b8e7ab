// Attention: pieces are heads.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/shard/rule_parts.h"
#include "graph/shard/rules.h"

namespace npumesh {
namespace {

bool Lists(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The axis of N, or of H, the vectors of all heads side by side; -1: there is neither.
int AxisOfHeads(std::string_view letters) {
  const size_t at = letters.find_first_of("NH");
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

class Attention {
 public:
  Attention(const RuleQuestion& question, const HeadsTrait& trait)
      : question_(question), trait_(trait), answer_(AllReplicated(question)) {}

  RuleOutcome Decide();

 private:
  const RuleInput& input(size_t at) const { return question_.inputs[at]; }
  RuleOutcome Take(size_t at, std::string_view port);
  RuleOutcome TakeShared(size_t at);
  RuleOutcome TakeByHead(size_t at, std::string_view port);
  RuleOutcome TakeQuery();
  RuleOutcome LeaveOutputs();
  int64_t SharedHeads() const;
  int AxisOfShared(const Shape& shape) const;

  const RuleQuestion& question_;
  const HeadsTrait& trait_;
  RuleAnswer answer_;
  size_t query_ = 0;
  std::string in_letters_, out_letters_;
  int64_t heads_ = 0, shared_heads_ = 0;
  int pieces_ = 1, shared_pieces_ = 1;
};

// An outcome that does not end the decision.
RuleOutcome GoOn() {
  return {};
}

bool Ends(const RuleOutcome& outcome) {
  return outcome.wish || !outcome.why.empty();
}

RuleOutcome Wished(size_t at, int pieces, std::string why) {
  return {{}, Wish{at, pieces, {}, why}, why};
}

// Of keys and values: as the attribute says, or as the sizes do.
int64_t Attention::SharedHeads() const {
  if (!trait_.shared_heads.empty()) {
    const int64_t given = question_.context.attr_int(trait_.shared_heads);
    return given == 0 ? heads_ : given;
  }
  const std::optional<size_t> key = InputAt(question_, trait_.shared.front());
  const int axis = AxisOfHeads(in_letters_);
  if (!key || input(*key).type.shape.rank() != static_cast<int>(in_letters_.size())) return 0;
  const int64_t size = input(*key).type.shape[axis];
  if (in_letters_[static_cast<size_t>(axis)] == 'N') return size;
  const int64_t width = input(query_).type.shape[axis] / heads_;
  return width == 0 ? 0 : size / width;
}

// Pages have their heads as the vectors of a row of three axes, or before the rows.
int Attention::AxisOfShared(const Shape& shape) const {
  if (InputAt(question_, trait_.pages)) return shape.rank() == 3 ? 2 : 1;
  return AxisOfHeads(in_letters_);
}

RuleOutcome Attention::TakeQuery() {
  const std::optional<size_t> at = InputAt(question_, trait_.query);
  const std::string letters = question_.context.attr_string(trait_.arrangement);
  const size_t cut = letters.find('_');
  in_letters_ = letters.substr(0, cut);
  out_letters_ = cut == std::string::npos ? in_letters_ : letters.substr(cut + 1);
  const int axis = AxisOfHeads(in_letters_);
  if (!at || axis < 0 || AxisOfHeads(out_letters_) < 0) return Whole("its heads are not known");
  query_ = *at;
  const ShardLayout& layout = input(query_).layout;
  if (!IsSplit(input(query_)) || layout.axis != axis || !layout.blocks.empty()) {
    return Whole("its queries are not split by heads");
  }
  heads_ = question_.context.attr_int(trait_.heads);
  pieces_ = layout.pieces;
  if (heads_ % pieces_ != 0) {
    return Wished(query_, static_cast<int>(std::gcd<int64_t>(heads_, pieces_)),
                  fmt::format("{} heads do not fall into {} equal pieces", heads_, pieces_));
  }
  shared_heads_ = SharedHeads();
  if (shared_heads_ <= 0) return Whole("its heads of keys and values are not known");
  if (shared_heads_ % pieces_ == 0) {
    shared_pieces_ = pieces_;
  } else if (pieces_ % shared_heads_ == 0) {
    shared_pieces_ = static_cast<int>(shared_heads_);
  } else {
    return Wished(query_, static_cast<int>(std::gcd<int64_t>(shared_heads_, pieces_)),
                  fmt::format("{} heads of keys and values do not fall into {} equal pieces",
                              shared_heads_, pieces_));
  }
  answer_.inputs[query_] = layout;
  return GoOn();
}

RuleOutcome Attention::TakeShared(size_t at) {
  const RuleInput& mine = input(at);
  const int axis = AxisOfShared(mine.type.shape);
  const ShardLayout wanted =
      shared_pieces_ == 1 ? ShardLayout() : ShardLayout::Split(axis, shared_pieces_);
  const bool heads =
      !mine.layout.split() || (mine.layout.axis == axis && mine.layout.blocks.empty());
  if (!heads) return Whole("its keys and values are not split by heads");
  if (IsSplit(mine) && !mine.known && mine.layout.pieces != shared_pieces_) {
    return Wished(at, shared_pieces_,
                  fmt::format("{} heads of keys and values do not fall into {} equal pieces",
                              shared_heads_, mine.layout.pieces));
  }
  answer_.inputs[at] = wanted;
  return GoOn();
}

// Tensors [B or 1, N or 1, S, S].
RuleOutcome Attention::TakeByHead(size_t at, std::string_view port) {
  const Shape& shape = input(at).type.shape;
  if (shape.rank() != 4 || (shape[1] != 1 && shape[1] != heads_)) {
    return Whole(fmt::format("its {} has no axis of heads", port));
  }
  if (shape[1] == 1) {
    if (IsSplit(input(at))) return Whole(fmt::format("its {} is split", port));
    return GoOn();
  }
  const auto layout = AsPieces(input(at), 1, ShardLayout::Split(0, pieces_));
  if (!layout) return Whole(fmt::format("its {} is not split by heads", port));
  answer_.inputs[at] = *layout;
  return GoOn();
}

RuleOutcome Attention::Take(size_t at, std::string_view port) {
  if (Lists(trait_.shared, port)) return TakeShared(at);
  if (Lists(trait_.by_head, port)) return TakeByHead(at, port);
  const Shape& shape = input(at).type.shape;
  const bool of_all = Lists(trait_.of_all, port) && !(shape.rank() == 4 && shape[1] != 1);
  if (!of_all || IsSplit(input(at))) {
    return Whole(fmt::format("npumesh does not know how the heads share its {}", port));
  }
  return GoOn();
}

RuleOutcome Attention::LeaveOutputs() {
  const std::vector<PortSpec>& ports = question_.context.schema().outputs;
  for (size_t i = 0; i < question_.outputs.size(); ++i) {
    const Shape& shape = question_.outputs[i].shape;
    if (i < ports.size() && ports[i].name == trait_.mixed) {
      answer_.outputs[i] = ShardLayout::Split(AxisOfHeads(out_letters_), pieces_);
    } else if (shape.rank() >= 3 && shape[1] == heads_) {
      answer_.outputs[i] = ShardLayout::Split(1, pieces_);
    } else if (shape.elements() > 1) {
      return Whole("its statistics have no axis of heads");
    }
  }
  answer_.attrs.emplace_back(trait_.heads, heads_ / pieces_);
  if (!trait_.shared_heads.empty()) {
    answer_.attrs.emplace_back(trait_.shared_heads, shared_heads_ / shared_pieces_);
  }
  return {std::move(answer_), {}, {}};
}

RuleOutcome Attention::Decide() {
  if (RuleOutcome outcome = TakeQuery(); Ends(outcome)) return outcome;
  const OpContext& context = question_.context;
  for (const PortSpec& port : context.schema().inputs) {
    // Keys and values may be a list with a tensor for each sequence.
    for (int i = 0; i < context.count(port.name); ++i) {
      const auto at = static_cast<size_t>(context.input_index(context.slot(port.name) + i));
      if (at == query_) continue;
      if (RuleOutcome outcome = Take(at, port.name); Ends(outcome)) return outcome;
    }
  }
  return LeaveOutputs();
}

}  // namespace

RuleOutcome HeadsRule(const RuleQuestion& question, const HeadsTrait& trait) {
  return Attention(question, trait).Decide();
}

}  // namespace npumesh
