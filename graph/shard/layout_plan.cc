#include "graph/shard/layout_plan.h"

#include <algorithm>
#include <numeric>

#include "graph/ir/node_kind.h"
#include "graph/passes/rewrite/constant_folding.h"

namespace npumesh {
namespace {

Status Obstacle(const Node& node, std::string_view what, std::string_view needed) {
  return Error(Code::kUnsupported, "node \"{}\" ({}): {}; needed: {}", node.name, node.type, what,
               needed);
}

}  // namespace

LayoutPlan::LayoutPlan(const GraphAnalysis& analysis, int ranks)
    : analysis_(analysis), ranks_(ranks) {
  for (const NodeId id : graph().DataNodes()) {
    const std::optional<Shape>& shape = graph().node(id).output_descs[0].shape;
    open_ = open_ || !shape || !shape->is_static();
  }
  FindKnown();
  for (const NodeId id : analysis_.order()) {
    const Node& node = graph().node(id);
    if (IsInputNode(node) || IsWeightNode(node) || IsNetOutput(node)) continue;
    if (!known({id, 0})) order_.push_back(id);
  }
  FindVocabulary();
}

void LayoutPlan::FindKnown() {
  known_.assign(graph().nodes().size(), false);
  for (const NodeId id : analysis_.order()) {
    const Node& node = graph().node(id);
    const Operator* op = analysis_.bound().op(id);
    bool mine = IsWeightNode(node) && inference().constant({id, 0}) != nullptr;
    if (op != nullptr) {
      const bool from_known =
          std::all_of(node.inputs.begin(), node.inputs.end(),
                      [&](const std::optional<Value>& value) { return !value || known(*value); });
      mine = inference().folded(id) ? from_known || (op->axes.shape_query() && !open_)
                                    : from_known && ComputedFromWeights(node, *op);
    }
    known_[static_cast<size_t>(id)] = mine;
  }
}

// Of a node whose inputs are known, and which was too large to be folded: a transposed weight, but
// no fill, which graphs keep as it is.
bool LayoutPlan::ComputedFromWeights(const Node& node, const Operator& op) const {
  if (!IsRepeatable(op, inference().context(node.id))) return false;
  constexpr uint64_t kMostGrowth = 4;
  uint64_t read = 0, made = 0;
  for (const std::optional<Value>& value : node.inputs) {
    if (value) read += inference().type(*value).bytes();
  }
  for (const TensorType& type : inference().types(node.id)) made += type.bytes();
  return made <= kMostGrowth * read;
}

Result<Tensor> LayoutPlan::Constant(Value value) const {
  if (const Tensor* const folded = inference().constant(value)) return *folded;
  const Node& node = graph().node(value.node);
  OpContext context = inference().context(value.node);
  std::vector<Tensor> inputs(static_cast<size_t>(context.slots()));
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    const auto at = static_cast<size_t>(slot);
    const auto input = static_cast<size_t>(context.input_index(slot));
    NPUMESH_ASSIGN_OR_RETURN(inputs[at], Constant(*node.inputs[input]));
    context.set_value(slot, &inputs[at]);
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::optional<std::vector<Tensor>> outputs,
                           FoldConstants(*analysis_.bound().op(value.node), context, UINT64_MAX));
  if (outputs) return (*outputs)[static_cast<size_t>(value.port)];
  return Error(Code::kInternal, "node \"{}\" ({}) cannot be computed", node.name, node.type);
}

void LayoutPlan::FindVocabulary() {
  for (const NodeId id : order_) {
    const Operator* op = analysis_.bound().op(id);
    if (op == nullptr || op->axes.looked_up() == nullptr) continue;
    const RuleQuestion question = QuestionOf(graph().node(id), *op);
    const std::string_view data = op->axes.inputs()[0].port;
    const int at = question.context.input_index(question.context.slot(data));
    const RuleInput& table = question.inputs[static_cast<size_t>(at)];
    if (!table.known || table.type.shape.rank() != 2) continue;
    vocabulary_ = std::max(vocabulary_, table.type.shape[0]);
  }
}

const RuleAnswer* LayoutPlan::answer(NodeId id) const {
  const auto found = answers_.find(id);
  return found == answers_.end() ? nullptr : &found->second;
}

const ShardLayout& LayoutPlan::layout(Value value) const {
  static const auto* const whole = new ShardLayout;
  const auto found = layouts_.find(value);
  return found == layouts_.end() ? *whole : found->second;
}

ShardLayout LayoutPlan::LayoutOfOutput(Value value) const {
  return of_inputs_.contains(value) ? layout(value) : ShardLayout();
}

Status LayoutPlan::CheckNode(const Node& node, const Operator& op) const {
  if (op.collective) return Obstacle(node, "talks to other ranks already", "the graph of one card");
  if (!node.subgraphs.empty()) {
    return Obstacle(node, "runs subgraphs, which cannot be sharded",
                    "a graph without control flow");
  }
  if (!op.pure) {
    return Obstacle(node, "gives each rank other random numbers",
                    "a graph for inference, without it");
  }
  return Status();
}

std::vector<Value> LayoutPlan::UpdatedBy(const Node& node, const Operator& op) const {
  std::vector<Value> updated;
  if (op.in_place.empty()) return updated;
  const OpContext& context = inference().context(node.id);
  for (const InPlace& place : InPlacesOf(op, context)) {
    const int at = context.input_index(place.slot);
    if (at >= 0) updated.push_back(*node.inputs[static_cast<size_t>(at)]);
  }
  return updated;
}

// Whether ranks update in place what they have. Where they would have to have pieces instead,
// inputs behind the tensor may become such pieces.
bool LayoutPlan::UpdatesWhatItHas(const Node& node, const Operator& op, const RuleAnswer& answer) {
  const std::vector<Value> updated = UpdatedBy(node, op);
  bool has = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool mine = node.inputs[i] &&
                      std::find(updated.begin(), updated.end(), *node.inputs[i]) != updated.end();
    if (!mine || answer.inputs[i] == layout(*node.inputs[i])) continue;
    if (answer.inputs[i].split()) cuts_.push_back({*node.inputs[i], answer.inputs[i], node.id});
    has = false;
  }
  return has;
}

// True: a tensor that the node can only update whole will be whole.
Result<bool> LayoutPlan::KeepUpdatedWhole(const Node& node, const Operator& op) {
  for (const Value& value : UpdatedBy(node, op)) {
    if (!layout(value).split()) continue;
    if (KeepWhole(value, fmt::format("{} ({}) updates it in place", node.name, node.type))) {
      return true;
    }
    return Obstacle(
        node,
        fmt::format("updates a tensor in place that is split ({})", ToText(layout(value), ranks_)),
        "an update of a tensor that every rank has whole");
  }
  return false;
}

RuleQuestion LayoutPlan::QuestionOf(const Node& node, const Operator& op) const {
  RuleQuestion question{
      node, op,         inference().context(node.id), {}, inference().types(node.id), ranks_, 0,
      {},   vocabulary_};
  for (const std::optional<Value>& value : node.inputs) {
    RuleInput& input = question.inputs.emplace_back();
    if (value) input = {true, inference().type(*value), known(*value), layout(*value)};
  }
  if (const auto hint = hints_.find(node.id); hint != hints_.end()) {
    question.wished_pieces = hint->second.pieces;
    question.wished_blocks = hint->second.blocks;
  }
  return question;
}

// Something like a fill, of which a rank makes its piece at once.
bool LayoutPlan::MakesAnySize(Value value) const {
  const Operator* op = analysis_.bound().op(value.node);
  return op != nullptr && op->axes.fills();
}

LayoutPlan::Way LayoutPlan::WayTo(Value value, const ShardLayout& wanted) const {
  const ShardLayout& have = layout(value);
  if (known(value) || have == wanted) return Way::kAsIs;
  if (wanted.spread == Spreading::kPartial) return Way::kImpossible;
  // A copy of a tensor that the graph updates would be of one moment.
  const bool updated = IsRefData(graph().node(value.node));
  if (updated && (have.split() || !undecided_)) return Way::kImpossible;
  const Shape& shape = inference().type(value).shape;
  const bool cuts =
      wanted.split() && wanted.blocks.empty() && shape[wanted.axis] % wanted.pieces == 0;
  if (!have.split()) return cuts ? Way::kCut : Way::kImpossible;
  const bool finer = cuts && have.padding == 0 && have.axis == wanted.axis && have.blocks.empty() &&
                     wanted.pieces % have.pieces == 0;
  if (finer) return Way::kCut;
  const bool gathers = have.blocks.empty() && (shape[have.axis] + have.padding) % ranks_ == 0;
  return gathers && !wanted.split() ? Way::kGather : Way::kImpossible;
}

// What the node leaves may be pieces once inputs of the graph are.
bool LayoutPlan::MayComeToBePieces(const Node& node) const {
  const Operator* op = analysis_.bound().op(node.id);
  return node.id == graph().NetOutput() || (op != nullptr && !op->in_place.empty());
}

// True: a value cannot be had so, and a product will not be split any more.
bool LayoutPlan::TakeInputs(const Node& node, const std::vector<ShardLayout>& wanted) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) continue;
    const Value value = *node.inputs[i];
    const ShardLayout want = i < wanted.size() ? wanted[i] : ShardLayout();
    switch (WayTo(value, want)) {
      case Way::kAsIs:
        break;
      case Way::kCut:
        if (!MakesAnySize(value) && !layout(value).split()) cuts_.push_back({value, want});
        break;
      case Way::kGather:
        gathers_.emplace_back(node.id, value);
        break;
      case Way::kImpossible:
        if (undecided_ && MayComeToBePieces(node)) {
          gathers_.emplace_back(node.id, value);
          break;
        }
        return KeepWhole(value, fmt::format("{} ({}) needs all of it", node.name, node.type));
    }
  }
  return false;
}

bool LayoutPlan::KeepWhole(Value value, const std::string& reason) {
  bool changed = false;
  for (const NodeId origin : origins_[value]) {
    if (input_layouts_.erase(origin) > 0) {
      changed = true;
      continue;
    }
    Hint& hint = hints_[origin];
    changed = changed || hint.pieces != 1;
    hint = {1, {}, reason};
  }
  return changed;
}

// Asks the products behind the value to be split as the node needs it. True: one will be.
bool LayoutPlan::Grant(const Node& node, const Wish& wish) {
  const Value value = *node.inputs[wish.input];
  const ShardLayout& have = layout(value);
  const int64_t size = inference().type(value).shape[have.axis];
  const std::string reason = fmt::format("{} ({}): {}", node.name, node.type, wish.reason);
  bool changed = false;
  for (const NodeId origin : origins_[value]) {
    if (input_layouts_.erase(origin) > 0) {
      changed = true;
      continue;
    }
    const Hint before = hints_[origin];
    Hint hint = before;
    const int64_t columns = inference().types(origin)[0].shape.dims().back();
    int pieces = hint.pieces == 0 ? ranks_ : hint.pieces;
    if (wish.pieces > 0) pieces = std::gcd(pieces, wish.pieces);
    if (!wish.blocks.empty()) {
      const bool again = !hint.blocks.empty() || columns % size != 0;
      if (again) pieces = 1;
      hint.blocks.clear();
      for (const int64_t block : wish.blocks) {
        hint.blocks.push_back(block * (columns / size));
        pieces = static_cast<int>(std::gcd<int64_t>(pieces, hint.blocks.back()));
      }
    }
    if (pieces == 1) hint.blocks.clear();
    hint.pieces = pieces;
    hint.reason = reason;
    if (hint.pieces == before.pieces && hint.blocks == before.blocks) hint = {1, {}, reason};
    changed = changed || hint.pieces != before.pieces || hint.blocks != before.blocks;
    hints_[origin] = hint;
  }
  return changed;
}

void LayoutPlan::Leave(const Node& node, const Operator& op, RuleAnswer answer) {
  std::set<NodeId> origins;
  bool of_inputs = false;
  for (const std::optional<Value>& value : node.inputs) {
    if (!value || !layout(*value).split()) continue;
    origins.insert(origins_[*value].begin(), origins_[*value].end());
    of_inputs = of_inputs || of_inputs_.contains(*value);
  }
  if (op.axes.product() && origins.empty()) origins.insert(node.id);
  for (size_t port = 0; port < answer.outputs.size(); ++port) {
    if (!answer.outputs[port].split()) continue;
    const Value value{node.id, static_cast<int>(port)};
    layouts_[value] = answer.outputs[port];
    origins_[value] = origins;
    if (of_inputs && !op.axes.product()) of_inputs_.insert(value);
  }
  answers_[node.id] = std::move(answer);
}

Result<bool> LayoutPlan::DecideNode(const Node& node, const Operator& op) {
  NPUMESH_RETURN_IF_ERROR(CheckNode(node, op));
  RuleOutcome outcome = ApplyRule(QuestionOf(node, op));
  if (outcome.wish && Grant(node, *outcome.wish)) return true;
  if (outcome.answer) {
    const std::vector<ShardLayout>& wanted = outcome.answer->inputs;
    bool possible = true;
    for (size_t i = 0; i < node.inputs.size() && possible; ++i) {
      possible = !node.inputs[i] || WayTo(*node.inputs[i], wanted[i]) != Way::kImpossible;
    }
    if (!possible)
      outcome = {std::nullopt, std::nullopt, "its operands are split in different ways"};
  }
  if (outcome.answer && !UpdatesWhatItHas(node, op, *outcome.answer)) {
    outcome = {std::nullopt, std::nullopt, "it updates a tensor that every rank has whole"};
  }
  whys_[node.id] = outcome.why;
  if (!outcome.answer) {
    NPUMESH_ASSIGN_OR_RETURN(const bool again, KeepUpdatedWhole(node, op));
    return again || TakeInputs(node, {});
  }
  if (TakeInputs(node, outcome.answer->inputs)) return true;
  Leave(node, op, *std::move(outcome.answer));
  return false;
}

Result<bool> LayoutPlan::Walk() {
  answers_.clear();
  layouts_.clear();
  origins_.clear();
  of_inputs_.clear();
  whys_.clear();
  gathers_.clear();
  cuts_.clear();
  for (const auto& [input, layout] : input_layouts_) {
    const Value value{input, 0};
    layouts_[value] = layout;
    origins_[value] = {input};
    of_inputs_.insert(value);
  }
  for (const NodeId id : order_) {
    const Node& node = graph().node(id);
    const Operator* op = analysis_.bound().op(id);
    if (op == nullptr) {
      if (TakeInputs(node, {})) return true;
      continue;
    }
    NPUMESH_ASSIGN_OR_RETURN(const bool again, DecideNode(node, *op));
    if (again) return true;
  }
  const NodeId sink = graph().NetOutput();
  if (sink == kNoNode) return false;
  std::vector<ShardLayout> wanted;
  for (const std::optional<Value>& value : graph().node(sink).inputs) {
    wanted.push_back(value ? LayoutOfOutput(*value) : ShardLayout());
  }
  return TakeInputs(graph().node(sink), wanted);
}

Status LayoutPlan::WalkToEnd() {
  const size_t most = 8 * order_.size() + 16;
  for (size_t i = 0; i < most; ++i) {
    NPUMESH_ASSIGN_OR_RETURN(const bool again, Walk());
    if (!again) return Status();
  }
  return Error(Code::kUnsupported, "graph \"{}\": no way to split it was found in {} attempts",
               graph().name(), most);
}

// Inputs of floating types from which a value is made without a product.
std::set<NodeId> LayoutPlan::InputsBehind(Value value) const {
  std::set<NodeId> inputs, seen;
  std::vector<NodeId> open = {value.node};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second || known_[static_cast<size_t>(id)]) continue;
    const Node& node = graph().node(id);
    const Operator* op = analysis_.bound().op(id);
    if (IsInputNode(node)) inputs.insert(id);
    if (op == nullptr || op->axes.product() || op->axes.shape_query()) continue;
    for (const std::optional<Value>& input : node.inputs) {
      if (input) open.push_back(input->node);
    }
  }
  return inputs;
}

// True: fewer whole values are cut now and nothing more is gathered. Otherwise nothing changes.
Result<bool> LayoutPlan::TryInputs(const InputLayouts& wanted) {
  const size_t cuts = cuts_.size(), gathers = gathers_.size();
  const auto hints = hints_;
  const auto inputs = input_layouts_;
  for (const auto& [input, layout] : wanted) input_layouts_[input] = layout;
  const Status walked = WalkToEnd();
  const bool all = std::all_of(wanted.begin(), wanted.end(), [this](const auto& entry) {
    return input_layouts_.contains(entry.first);
  });
  if (walked.ok() && all && cuts_.size() < cuts && gathers_.size() <= gathers) return true;
  hints_ = hints;
  input_layouts_ = inputs;
  NPUMESH_RETURN_IF_ERROR(WalkToEnd());
  return false;
}

// How an input may be given so that ranks have the piece that they cut.
std::vector<ShardLayout> LayoutPlan::LayoutsFor(NodeId input, const Cut& cut) const {
  std::vector<ShardLayout> layouts;
  const Shape& shape = inference().type({input, 0}).shape;
  const std::optional<Shape>& declared = graph().node(input).output_descs[0].shape;
  if (!declared || declared->rank() != shape.rank() || shape.rank() < 3) return layouts;
  const int64_t wanted = inference().type(cut.value).shape[cut.layout.axis];
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t size = (*declared)[axis];
    if (size != wanted || size % cut.layout.pieces != 0) continue;
    layouts.push_back(ShardLayout::Split(axis, cut.layout.pieces));
  }
  return layouts;
}

// The inputs that the node of the cut updates together with this one, whose caches are alike.
LayoutPlan::InputLayouts LayoutPlan::UpdatedBeside(NodeId input, const ShardLayout& layout,
                                                   const Cut& cut) const {
  InputLayouts together = {{input, layout}};
  for (const Cut& other : cuts_) {
    if (cut.updater == kNoNode || other.updater != cut.updater) continue;
    for (const NodeId beside : InputsBehind(other.value)) {
      for (const ShardLayout& each : LayoutsFor(beside, other)) {
        if (each.axis == layout.axis) together.emplace(beside, each);
      }
    }
  }
  return together;
}

// True: the input is given in pieces now.
Result<bool> LayoutPlan::TrySplit(NodeId input, const Cut& cut) {
  for (const ShardLayout& layout : LayoutsFor(input, cut)) {
    NPUMESH_ASSIGN_OR_RETURN(const bool split, TryInputs(UpdatedBeside(input, layout, cut)));
    if (split) return true;
  }
  return false;
}

// Inputs of which ranks only take pieces, caches of keys and values for example, become pieces.
Status LayoutPlan::SplitInputs() {
  for (bool found = true; found;) {
    found = false;
    const std::vector<Cut> cuts = cuts_;
    for (const Cut& cut : cuts) {
      for (const NodeId input : InputsBehind(cut.value)) {
        if (!tried_.insert(input).second) continue;
        NPUMESH_ASSIGN_OR_RETURN(const bool split, TrySplit(input, cut));
        found = found || split;
      }
      if (found) break;
    }
  }
  return Status();
}

Status LayoutPlan::NothingSplit() const {
  for (const NodeId id : order_) {
    const Node& node = graph().node(id);
    const Operator* op = analysis_.bound().op(id);
    if (op == nullptr || !op->axes.product()) continue;
    const auto hint = hints_.find(id);
    const auto why = whys_.find(id);
    std::string text = hint != hints_.end() ? hint->second.reason : std::string();
    if (text.empty() && why != whys_.end()) text = why->second;
    if (text.empty()) text = "its right operand is no weight";
    return Obstacle(node,
                    fmt::format("nothing can be split over {} ranks, first here: {}", ranks_, text),
                    fmt::format("a weight whose columns, and heads, {} divides", ranks_));
  }
  return Error(Code::kUnsupported,
               "graph \"{}\": nothing to shard; needed: a product of values and a weight",
               graph().name());
}

Status LayoutPlan::Decide() {
  NPUMESH_RETURN_IF_ERROR(WalkToEnd());
  NPUMESH_RETURN_IF_ERROR(SplitInputs());
  undecided_ = false;
  NPUMESH_RETURN_IF_ERROR(WalkToEnd());
  const bool weights = std::any_of(answers_.begin(), answers_.end(), [](const auto& entry) {
    const RuleAnswer& answer = entry.second;
    return answer.rows_of_table ||
           std::any_of(answer.outputs.begin(), answer.outputs.end(), [](const ShardLayout& layout) {
             return layout.spread != Spreading::kReplicated;
           });
  });
  return weights ? Status() : NothingSplit();
}

bool LayoutPlan::OnlyCounts(NodeId id) const {
  const std::vector<TensorType>& types = inference().types(id);
  return !types.empty() && std::all_of(types.begin(), types.end(), [](const TensorType& type) {
    return IsInteger(type.dtype) || type.dtype == DataType::kBool;
  });
}

std::vector<ShardNote> LayoutPlan::Notes() const {
  std::vector<ShardNote> notes;
  for (const NodeId id : graph().DataNodes()) {
    const Node& node = graph().node(id);
    const ShardLayout& mine = layout({id, 0});
    notes.push_back({mine.split() ? ShardFate::kSharded : ShardFate::kReplicated, node.name,
                     node.type, mine.split() ? "each rank is given " + ToText(mine, ranks_) : ""});
  }
  std::map<NodeId, std::vector<Value>> gathered;
  for (const auto& [reader, value] : gathers_) gathered[reader].push_back(value);
  const auto add_gathers = [&](NodeId id) {
    for (const Value& value : gathered[id]) {
      const Node& made = graph().node(value.node);
      notes.push_back({ShardFate::kGathered, made.name, made.type,
                       fmt::format("{} gathered for {}", ToText(layout(value), ranks_),
                                   graph().node(id).name)});
    }
  };
  for (const NodeId id : order_) {
    add_gathers(id);
    const Node& node = graph().node(id);
    const Operator* op = analysis_.bound().op(id);
    ShardNote note{ShardFate::kReplicated, node.name, node.type, ""};
    const RuleAnswer* mine = answer(id);
    if (mine != nullptr && !mine->outputs.empty() &&
        mine->outputs[0].spread != Spreading::kReplicated) {
      const bool partial = mine->outputs[0].spread == Spreading::kPartial;
      note.fate = partial ? ShardFate::kReduced : ShardFate::kSharded;
      note.text = ToText(mine->outputs[0], ranks_);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.inputs[i] || !known(*node.inputs[i]) || !mine->inputs[i].split()) continue;
        note.text =
            fmt::format("{}; weight {}: {}", partial ? "summed over all ranks" : note.text,
                        graph().node(node.inputs[i]->node).name, ToText(mine->inputs[i], ranks_));
        break;
      }
      if (partial && note.text == "partial sums") note.text = "summed over all ranks";
    }
    const auto why = whys_.find(id);
    const auto hint = hints_.find(id);
    if (op != nullptr && op->axes.product() && hint != hints_.end() &&
        !hint->second.reason.empty()) {
      note.text += (note.text.empty() ? "" : "; ") + hint->second.reason;
    } else if (why != whys_.end() && !why->second.empty()) {
      note.text += (note.text.empty() ? "" : "; ") + why->second;
    }
    note.counts = note.fate == ShardFate::kReplicated && OnlyCounts(id);
    notes.push_back(std::move(note));
  }
  if (graph().NetOutput() != kNoNode) add_gathers(graph().NetOutput());
  return notes;
}

}  // namespace npumesh
