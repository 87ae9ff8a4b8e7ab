#include "graph/shard/shard_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "graph/engine/analyse/graph_analysis.h"
#include "graph/ir/node_kind.h"
#include "graph/ops/shard_nodes.h"
#include "graph/shard/layout_plan.h"
#include "graph/shard/rule_parts.h"

namespace npumesh {
namespace {

constexpr std::string_view kGroup = "hccl_world_group";
// Constants of more elements are weights: one stays one, however often and through whatever
// transposition it is read.
constexpr int64_t kSmallConstant = 64;

Tensor Int64s(const std::vector<int64_t>& values) {
  return Tensor::FromVector({DataType::kInt64, Shape({static_cast<int64_t>(values.size())})},
                            values);
}

// Integers of the type that a port with sizes has.
Tensor IntegersOf(DataType dtype, const std::vector<int64_t>& values) {
  if (dtype != DataType::kInt32) return Int64s(values);
  return Tensor::FromVector({DataType::kInt32, Shape({static_cast<int64_t>(values.size())})},
                            std::vector<int32_t>(values.begin(), values.end()));
}

// Writes the graph of one rank.
class RankWriter {
 public:
  RankWriter(const LayoutPlan& plan, int rank) : plan_(plan), rank_(rank) {}

  Result<Graph> Write();
  // The value of this graph that stands for one of the whole graph. REQUIRES: a node of the plan.
  Value PartOf(Value value) const { return values_.at(value); }

 private:
  using Wanted = std::pair<Value, std::string>;

  Result<Value> Add(Node node);
  Result<Value> AddConst(const std::string& name, const Tensor& tensor);
  Result<Value> Known(Value value, const ShardLayout& wanted);
  Result<Value> MakeKnown(Value value, const ShardLayout& wanted);
  Result<std::optional<Value>> KnownThrough(Value value, const ShardLayout& wanted);
  Result<Value> Gathered(Value value);
  Result<Value> Cut(Value value, const ShardLayout& wanted);
  Result<Value> SliceOf(Value piece, const std::string& name, int axis, int64_t first,
                        int64_t count);
  Result<Value> Filled(Value value, const ShardLayout& wanted);
  Result<Value> Input(Value value, const ShardLayout& wanted);
  Result<Value> Scaled(Value value, const ScaledSizes& scaled);
  Result<Node> Adapted(const Node& whole, const RuleAnswer* answer);
  Status AddNode(const Node& whole);
  Status AddInput(const Node& whole);
  Result<Value> LookedUp(const Node& whole, Node node);
  std::string Unique(const std::string& base) const;
  int Piece(const ShardLayout& layout) const {
    return PieceOf(rank_, layout.pieces, plan_.ranks());
  }

  const LayoutPlan& plan_;
  int rank_;
  Graph graph_;
  std::map<Value, Value> values_;    // of the whole graph, in this one
  std::map<Value, Value> gathered_;  // by values of the whole graph
  std::map<Wanted, Value> knowns_;   // by value and layout
  std::map<NodeId, NodeId> nodes_;
};

std::string RankWriter::Unique(const std::string& base) const {
  std::string name = base;
  for (int i = 1; graph_.Find(name) != kNoNode; ++i) name = fmt::format("{}_part{}", base, i);
  return name;
}

Result<Value> RankWriter::Add(Node node) {
  node.name = Unique(node.name);
  NPUMESH_ASSIGN_OR_RETURN(const NodeId id, graph_.Add(std::move(node)));
  return Value{id, 0};
}

Result<Value> RankWriter::AddConst(const std::string& name, const Tensor& tensor) {
  return Add(ConstNode(name, tensor));
}

// A value that is known before the graph runs: constants become their pieces, and what transposes a
// weight or views it does so with the piece.
Result<Value> RankWriter::Known(Value value, const ShardLayout& wanted) {
  const Wanted key{value, ToText(wanted, 0)};
  if (const auto found = knowns_.find(key); found != knowns_.end()) return found->second;
  NPUMESH_ASSIGN_OR_RETURN(const Value made, MakeKnown(value, wanted));
  knowns_[key] = made;
  return made;
}

Result<Value> RankWriter::MakeKnown(Value value, const ShardLayout& wanted) {
  const Node& node = plan_.graph().node(value.node);
  const int64_t elements = plan_.inference().type(value).shape.elements();
  if (!IsWeightNode(node) && elements > kSmallConstant) {
    NPUMESH_ASSIGN_OR_RETURN(const std::optional<Value> through, KnownThrough(value, wanted));
    if (through) return *through;
  }
  NPUMESH_ASSIGN_OR_RETURN(const Tensor tensor, plan_.Constant(value));
  return AddConst(node.name, PieceOf(tensor, wanted, rank_, plan_.ranks()));
}

Result<std::optional<Value>> RankWriter::KnownThrough(Value value, const ShardLayout& wanted) {
  const Node& whole = plan_.graph().node(value.node);
  const Operator& op = *plan_.analysis().bound().op(value.node);
  const bool moves = (op.view && !op.retypes) || !op.axes.permutation().empty();
  if (!moves || !whole.inputs[0] || !plan_.known(*whole.inputs[0])) return std::optional<Value>();
  RuleQuestion question = plan_.QuestionOf(whole, op);
  const int rank = question.inputs[0].type.shape.rank();
  for (int axis = wanted.split() ? 0 : rank; axis <= rank; ++axis) {
    RuleAnswer answer;
    answer.inputs.resize(whole.inputs.size());
    if (axis < rank) {
      const int64_t size = question.inputs[0].type.shape[axis];
      if ((size + wanted.padding) % wanted.pieces != 0) continue;
      question.inputs[0].layout = wanted;
      question.inputs[0].layout.axis = axis;
      RuleOutcome outcome = ApplyRule(question);
      if (!outcome.answer || outcome.answer->outputs[0] != wanted) continue;
      answer = *std::move(outcome.answer);
    } else if (wanted.spread != Spreading::kReplicated) {
      return std::optional<Value>();
    }
    NPUMESH_ASSIGN_OR_RETURN(Node node, Adapted(whole, &answer));
    NPUMESH_ASSIGN_OR_RETURN(const Value made, Add(std::move(node)));
    return std::optional<Value>(made);
  }
  return std::optional<Value>();
}

Result<Value> RankWriter::SliceOf(Value piece, const std::string& name, int axis, int64_t first,
                                  int64_t count) {
  NPUMESH_ASSIGN_OR_RETURN(const Value begin, AddConst(name + "_begin", Int64s({first})));
  NPUMESH_ASSIGN_OR_RETURN(const Value end, AddConst(name + "_end", Int64s({first + count})));
  NPUMESH_ASSIGN_OR_RETURN(const Value axes, AddConst(name + "_axis", Int64s({axis})));
  return Add(SliceNode(name, piece, begin, end, axes));
}

// A piece of what this rank has: of the whole, or of a larger piece.
Result<Value> RankWriter::Cut(Value value, const ShardLayout& wanted) {
  const Wanted key{value, "cut " + ToText(wanted, 0)};
  if (const auto found = knowns_.find(key); found != knowns_.end()) return found->second;
  const ShardLayout& have = plan_.layout(value);
  const int64_t size = plan_.inference().type(value).shape[wanted.axis];
  const int64_t count = size / wanted.pieces;
  int64_t first = Piece(wanted) * count;
  if (have.split()) first -= Piece(have) * (size / have.pieces);
  const std::string name = plan_.graph().node(value.node).name + "_piece";
  NPUMESH_ASSIGN_OR_RETURN(const Value cut,
                           SliceOf(values_.at(value), name, wanted.axis, first, count));
  knowns_[key] = cut;
  return cut;
}

// A piece of a tensor whose elements are all equal.
Result<Value> RankWriter::Filled(Value value, const ShardLayout& wanted) {
  const Node& whole = plan_.graph().node(value.node);
  const Operator& op = *plan_.analysis().bound().op(value.node);
  RuleAnswer answer;
  answer.inputs.resize(whole.inputs.size());
  if (!ScaleSizes(plan_.QuestionOf(whole, op), 0, wanted.axis, wanted.pieces, &answer)) {
    return Error(Code::kInternal, "node \"{}\" ({}) has no sizes", whole.name, whole.type);
  }
  NPUMESH_ASSIGN_OR_RETURN(Node node, Adapted(whole, &answer));
  node.name += "_piece";
  return Add(std::move(node));
}

// Pieces come one after the other along axis 0; those of another axis are put side by side.
Result<Value> RankWriter::Gathered(Value value) {
  if (const auto found = gathered_.find(value); found != gathered_.end()) return found->second;
  const ShardLayout& have = plan_.layout(value);
  const int ranks = plan_.ranks();
  const std::string name = plan_.graph().node(value.node).name + "_gather";
  const int64_t size = plan_.inference().type(value).shape[have.axis];
  const int64_t rest = (size + have.padding) / ranks - have.padding;  // of the last piece
  Value piece = values_.at(value);
  if (have.pieces != ranks) {
    NPUMESH_ASSIGN_OR_RETURN(piece, Cut(value, ShardLayout::Split(have.axis, ranks)));
  }
  Node gather = AllGatherNode(name, piece, kGroup, ranks);
  gather.attrs[std::string(kShardAttr)] = AttrValue::String("gathered: " + ToText(have, ranks));
  NPUMESH_ASSIGN_OR_RETURN(Value whole, Add(std::move(gather)));
  if (have.axis != 0) {
    NPUMESH_ASSIGN_OR_RETURN(const Value parts, Add(PartsNode(name + "_parts", whole, ranks)));
    std::vector<Value> pieces;
    for (int rank = 0; rank < ranks; ++rank) pieces.push_back({parts.node, rank});
    if (have.padding > 0 && rest > 0) {  // a copy of one piece in place of all
      NPUMESH_ASSIGN_OR_RETURN(pieces.back(),
                               SliceOf(pieces.back(), name + "_rest", have.axis, 0, rest));
    }
    NPUMESH_ASSIGN_OR_RETURN(whole, Add(JoinNode(name + "_whole", pieces, have.axis)));
  }
  if (have.padding > 0 && (have.axis == 0 || rest <= 0)) {
    NPUMESH_ASSIGN_OR_RETURN(whole, SliceOf(whole, name + "_size", have.axis, 0, size));
  }
  gathered_[value] = whole;
  return whole;
}

Result<Value> RankWriter::Input(Value value, const ShardLayout& wanted) {
  if (plan_.known(value)) return Known(value, wanted);
  const ShardLayout& have = plan_.layout(value);
  if (have == wanted) return values_.at(value);
  if (!wanted.split()) return Gathered(value);
  const Operator* op = plan_.analysis().bound().op(value.node);
  const bool fill = op != nullptr && op->axes.fills();
  return fill && !have.split() ? Filled(value, wanted) : Cut(value, wanted);
}

// The sizes of a piece.
Result<Value> RankWriter::Scaled(Value value, const ScaledSizes& scaled) {
  const std::string name = plan_.graph().node(value.node).name + "_of_piece";
  const DataType dtype = plan_.inference().type(value).dtype;
  if (!plan_.known(value)) {
    NPUMESH_ASSIGN_OR_RETURN(const Value by,
                             AddConst(name + "_by", IntegersOf(dtype, scaled.divisors)));
    return Add(DivideDownNode(name, values_.at(value), by));
  }
  NPUMESH_ASSIGN_OR_RETURN(const Tensor known, plan_.Constant(value));
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < known.elements(); ++i) {
    sizes.push_back(dtype == DataType::kInt32 ? known.as<int32_t>()[static_cast<size_t>(i)]
                                              : known.as<int64_t>()[static_cast<size_t>(i)]);
  }
  return AddConst(name, IntegersOf(dtype, scaled.Of(std::move(sizes))));
}

// The node as this rank has it, with its inputs connected.
Result<Node> RankWriter::Adapted(const Node& whole, const RuleAnswer* answer) {
  Node node = whole;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) continue;
    if (answer != nullptr && answer->sizes && answer->sizes->input == i) {
      NPUMESH_ASSIGN_OR_RETURN(node.inputs[i], Scaled(*whole.inputs[i], *answer->sizes));
      continue;
    }
    const ShardLayout wanted = answer == nullptr ? ShardLayout() : answer->inputs[i];
    NPUMESH_ASSIGN_OR_RETURN(node.inputs[i], Input(*whole.inputs[i], wanted));
    if (wanted != ShardLayout()) node.input_descs[i].shape.reset();
  }
  if (answer != nullptr) {
    for (TensorDesc& desc : node.output_descs) desc.shape.reset();
    for (const auto& [name, number] : answer->attrs) node.attrs[name] = AttrValue::Int(number);
    if (answer->sizes && !answer->sizes->attr.empty()) {
      const std::string& sizes = answer->sizes->attr;
      node.attrs[sizes] = AttrValue::Ints(answer->sizes->Of(whole.IntsAttr(sizes)));
    }
    const ShardLayout output = answer->outputs.empty() ? ShardLayout() : answer->outputs[0];
    if (output != ShardLayout()) {
      const bool partial = output.spread == Spreading::kPartial;
      node.attrs[std::string(kShardAttr)] = AttrValue::String(
          partial ? "reduced: partial sums" : "sharded: " + ToText(output, plan_.ranks()));
    }
  }
  node.controls.clear();
  for (const NodeId control : whole.controls) {
    if (nodes_.contains(control)) node.controls.push_back(nodes_.at(control));
  }
  return node;
}

Result<Value> RankWriter::LookedUp(const Node& whole, Node node) {
  const Operator& op = *plan_.analysis().bound().op(whole.id);
  const OpContext& context = plan_.inference().context(whole.id);
  const std::string_view port = op.axes.looked_up()->positions;
  const int at = context.input_index(context.slot(port));
  const TensorType& table = context.in(op.axes.inputs()[0].port);
  const TensorType& positions = context.in(port);
  TableRows rows;
  rows.total = table.shape[0];
  const int64_t most = (rows.total + plan_.ranks() - 1) / plan_.ranks();
  rows.first = most * rank_;
  rows.count = std::min(most, rows.total - rows.first);
  rows.positions_rank = positions.shape.rank();
  rows.positions_type = positions.dtype;
  rows.row_type = {table.dtype, Shape()};
  rows.wraps = whole.BoolAttr("negative_index_support", false);
  return LookUpRows([this](Node each) { return Add(std::move(each)); }, std::move(node), at, rows);
}

Status RankWriter::AddInput(const Node& whole) {
  Node node = whole;
  const ShardLayout& layout = plan_.layout({whole.id, 0});
  if (layout.split()) {
    for (TensorDesc& desc : node.output_descs) {
      if (desc.shape) desc.shape = PieceShape(*desc.shape, layout);
    }
    for (TensorDesc& desc : node.input_descs) {
      if (desc.shape) desc.shape = PieceShape(*desc.shape, layout);
    }
    node.attrs[std::string(kShardAttr)] =
        AttrValue::String("sharded: " + ToText(layout, plan_.ranks()));
  }
  node.controls.clear();
  NPUMESH_ASSIGN_OR_RETURN(const NodeId id, graph_.Add(std::move(node)));
  nodes_[whole.id] = id;
  values_[{whole.id, 0}] = {id, 0};
  return Status();
}

Status RankWriter::AddNode(const Node& whole) {
  const RuleAnswer* answer = plan_.answer(whole.id);
  NPUMESH_ASSIGN_OR_RETURN(Node node, Adapted(whole, answer));
  const size_t ports = node.output_descs.size();
  Value made;
  if (answer != nullptr && answer->rows_of_table) {
    NPUMESH_ASSIGN_OR_RETURN(made, LookedUp(whole, std::move(node)));
  } else {
    NPUMESH_ASSIGN_OR_RETURN(const NodeId id, graph_.Add(std::move(node)));
    made = {id, 0};
  }
  nodes_[whole.id] = made.node;
  for (int port = 0; port < static_cast<int>(ports); ++port) {
    values_[{whole.id, port}] = {made.node, port};
  }
  if (answer == nullptr || answer->outputs.empty()) return Status();
  if (!answer->growth.empty()) {
    const DataType dtype = plan_.inference().types(whole.id)[0].dtype;
    NPUMESH_ASSIGN_OR_RETURN(const Value by,
                             AddConst(whole.name + "_by", IntegersOf(dtype, answer->growth)));
    NPUMESH_ASSIGN_OR_RETURN(const Value all, Add(MultiplyNode(whole.name + "_whole", made, by)));
    values_[{whole.id, 0}] = all;
  }
  if (answer->outputs[0].spread != Spreading::kPartial) return Status();
  Node sum = AllReduceNode(whole.name + "_sum", made, kGroup);
  sum.attrs[std::string(kShardAttr)] = AttrValue::String("reduced: summed over all ranks");
  NPUMESH_ASSIGN_OR_RETURN(const Value all, Add(std::move(sum)));
  values_[{whole.id, 0}] = all;
  return Status();
}

Result<Graph> RankWriter::Write() {
  const Graph& whole = plan_.graph();
  graph_.set_name(whole.name());
  graph_.attrs() = whole.attrs();
  for (const NodeId id : whole.DataNodes()) NPUMESH_RETURN_IF_ERROR(AddInput(whole.node(id)));
  for (const NodeId id : plan_.order()) NPUMESH_RETURN_IF_ERROR(AddNode(whole.node(id)));
  const NodeId sink = whole.NetOutput();
  if (sink != kNoNode) {
    RuleAnswer ends;
    for (const std::optional<Value>& value : whole.node(sink).inputs) {
      ends.inputs.push_back(value ? plan_.LayoutOfOutput(*value) : ShardLayout());
    }
    NPUMESH_ASSIGN_OR_RETURN(Node node, Adapted(whole.node(sink), &ends));
    NPUMESH_RETURN_IF_ERROR(graph_.Add(std::move(node)).status());
  }
  NPUMESH_RETURN_IF_ERROR(graph_.Verify());
  return std::move(graph_);
}

// `written`: the graph of the writer.
std::vector<ShardedValue> ValuesOf(const LayoutPlan& plan, const RankWriter& writer,
                                   const Graph& written) {
  std::vector<ShardedValue> values;
  for (const NodeId id : plan.order()) {
    const Node& node = plan.graph().node(id);
    for (int port = 0; port < static_cast<int>(node.output_descs.size()); ++port) {
      const Value value{id, port};
      const Value part = writer.PartOf(value);
      values.push_back({node.name, written.node(part.node).name, node.type, port, part.port,
                        plan.layout(value)});
    }
  }
  return values;
}

// Error: shapes of the graph depend on values.
Status CheckShapes(const GraphAnalysis& analysis) {
  for (const NodeId id : analysis.order()) {
    const Node& node = analysis.graph().node(id);
    const Operator* const op = analysis.bound().op(id);
    if (op == nullptr || op->evaluate == nullptr) continue;
    return Error(Code::kUnsupported,
                 "node \"{}\" ({}): how much it gives is known only after it ran; needed: a graph "
                 "whose shapes follow from those of its inputs",
                 node.name, node.type);
  }
  return Status();
}

}  // namespace

std::string_view Name(ShardFate fate) {
  constexpr std::array<std::string_view, 4> kNames = {"sharded", "replicated", "reduced",
                                                      "gathered"};
  return kNames[static_cast<size_t>(fate)];
}

Result<ShardedModel> ShardModel(const Model& model, const OpRegistry& registry, int ranks,
                                const std::vector<Tensor>& sample) {
  if (ranks < 2) {
    return Error(Code::kInvalidArgument, "cannot shard for {} ranks; expected 2 or more", ranks);
  }
  NPUMESH_RETURN_IF_ERROR(model.graph.Verify());
  std::vector<TensorType> types;
  for (const Tensor& tensor : sample) types.push_back(tensor.type());
  const CompileOptions options;
  GraphAnalysis analysis(model, registry, nullptr, options);
  NPUMESH_RETURN_IF_ERROR(analysis.TakeInputs(types, sample));
  NPUMESH_RETURN_IF_ERROR(CheckShapes(analysis));
  NPUMESH_RETURN_IF_ERROR(analysis.Infer());
  LayoutPlan plan(analysis, ranks);
  NPUMESH_RETURN_IF_ERROR(plan.Decide());
  ShardedModel sharded;
  sharded.notes = plan.Notes();
  for (const NodeId id : plan.graph().DataNodes()) sharded.inputs.push_back(plan.layout({id, 0}));
  if (const NodeId sink = plan.graph().NetOutput(); sink != kNoNode) {
    for (const std::optional<Value>& value : plan.graph().node(sink).inputs) {
      sharded.outputs.push_back(value ? plan.LayoutOfOutput(*value) : ShardLayout());
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    RankWriter writer(plan, rank);
    NPUMESH_ASSIGN_OR_RETURN(Graph graph, writer.Write());
    if (rank == 0) sharded.values = ValuesOf(plan, writer, graph);
    Model mine;
    mine.name = model.name;
    mine.version = model.version;
    mine.custom_version = model.custom_version;
    mine.attrs = model.attrs;
    mine.graph = std::move(graph);
    sharded.models.push_back(std::move(mine));
  }
  return sharded;
}

std::string ShardNotesAsText(const std::vector<ShardNote>& notes) {
  size_t name = 4, type = 4;
  std::array<int, 4> counts = {};
  int unlisted = 0;
  for (const ShardNote& note : notes) {
    ++counts[static_cast<size_t>(note.fate)];
    unlisted += note.counts ? 1 : 0;
    if (note.counts) continue;
    name = std::max(name, note.node.size());
    type = std::max(type, note.type.size());
  }
  std::string text;
  for (const ShardNote& note : notes) {
    if (note.counts) continue;
    std::string line = fmt::format("{:<10}  {:<{}}  {:<{}}  {}", Name(note.fate), note.node, name,
                                   note.type, type, note.text);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += fmt::format("{} sharded, {} replicated, {} reduced, {} gathered", counts[0], counts[1],
                      counts[2], counts[3]);
  if (unlisted > 0) text += fmt::format("; not listed: {} replicated that only count", unlisted);
  return text + "\n";
}

}  // namespace npumesh
