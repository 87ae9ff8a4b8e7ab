#include "graph/shard/shard_model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "graph/engine/graph_analysis.h"
#include "graph/ops/split_facts.h"
#include "graph/shard/layout_rules.h"

namespace npumesh {
namespace {

constexpr std::string_view kGroup = "hccl_world_group";

// Piece `piece` of `pieces` along `axis`. REQUIRES: the axis falls into equal pieces.
Tensor SliceOf(const Tensor& whole, int axis, int piece, int pieces) {
  TensorType type = whole.type();
  type.shape[axis] /= pieces;
  Tensor slice = Tensor::Allocate(type);
  int64_t rows = 1;
  for (int i = 0; i < axis; ++i) rows *= type.shape[i];
  if (rows == 0 || type.bytes() == 0) return slice;
  const size_t bytes = type.bytes() / static_cast<size_t>(rows);
  const size_t step = bytes * static_cast<size_t>(pieces);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    std::memcpy(slice.mutable_data() + row * bytes,
                whole.data() + row * step + static_cast<size_t>(piece) * bytes, bytes);
  }
  return slice;
}

Tensor Int64s(const std::vector<int64_t>& values) {
  return Tensor::FromVector({DataType::kInt64, Shape({static_cast<int64_t>(values.size())})},
                            values);
}

// The layouts of all values, decided once for all ranks.
class LayoutPlan {
 public:
  LayoutPlan(const GraphAnalysis& analysis, int ranks) : analysis_(analysis), ranks_(ranks) {}

  // Errors as ShardModel.
  Status Decide();

  const Graph& graph() const { return analysis_.graph(); }
  int ranks() const { return ranks_; }
  const Inference& inference() const { return analysis_.inference(); }
  // Nodes that the graphs of the ranks need, in execution order, without inputs and weights.
  const std::vector<NodeId>& order() const { return order_; }
  // How the node takes its inputs and leaves its outputs; null: it takes everything replicated.
  const RuleAnswer* answer(NodeId id) const {
    const auto found = answers_.find(id);
    return found == answers_.end() ? nullptr : &found->second;
  }
  // Of a value after its sum over all ranks, if it needs one.
  Layout layout(Value value) const {
    const auto found = layouts_.find(value);
    return found == layouts_.end() ? Layout() : found->second;
  }
  const std::vector<ShardNote>& notes() const { return notes_; }
  // A node that the ranks have under its own name.
  bool NameOfKeptNode(const std::string& name) const {
    const NodeId id = graph().Find(name);
    return id != kNoNode && std::find(order_.begin(), order_.end(), id) != order_.end();
  }

 private:
  Status CheckNode(const Node& node, const Operator& op) const;
  RuleQuestion QuestionOf(const Node& node, const Operator& op) const;
  Status DecideNode(const Node& node);
  bool ShapeIsKnown(const Node& node) const;
  void NoteGathers(const Node& node);
  void NoteNode(const Node& node, const RuleAnswer& answer);
  Status NothingSplit() const;

  const GraphAnalysis& analysis_;
  int ranks_;
  std::vector<NodeId> order_;
  std::map<NodeId, RuleAnswer> answers_;
  std::map<Value, Layout> layouts_;  // those that are split
  std::vector<ShardNote> notes_;
};

Status LayoutPlan::CheckNode(const Node& node, const Operator& op) const {
  const auto refuse = [&](std::string_view what, std::string_view needed) {
    return Error(Code::kUnsupported, "node \"{}\" ({}): {}; needed: {}", node.name, node.type, what,
                 needed);
  };
  if (op.collective) return refuse("talks to other ranks already", "the graph of one card");
  if (!node.subgraphs.empty()) {
    return refuse("runs subgraphs, which cannot be sharded", "a graph without control flow");
  }
  if (!op.pure) {
    return refuse("gives each rank other random numbers", "a graph for inference, without it");
  }
  return Status();
}

RuleQuestion LayoutPlan::QuestionOf(const Node& node, const Operator& op) const {
  RuleQuestion question{node, op, {}, inference().types(node.id), ranks_};
  for (const std::optional<Value>& value : node.inputs) {
    RuleInput& input = question.inputs.emplace_back();
    if (!value) continue;
    input = {true, inference().type(*value), inference().constant(*value), layout(*value)};
  }
  return question;
}

// An operator that is told its output shape is told that of a piece.
bool LayoutPlan::ShapeIsKnown(const Node& node) const {
  const int at = node.FindInput("shape");
  if (at < 0 || !node.inputs[static_cast<size_t>(at)]) return true;
  return inference().constant(*node.inputs[static_cast<size_t>(at)]) != nullptr;
}

void LayoutPlan::NoteGathers(const Node& node) {
  for (const std::optional<Value>& value : node.inputs) {
    if (!value || layout(*value) == Layout()) continue;
    notes_.push_back({ShardFate::kGathered, graph().node(value->node).name,
                      graph().node(value->node).type,
                      fmt::format("gathered for {}, which does not carry a value that is {}",
                                  node.name, ToText(layout(*value)))});
  }
}

void LayoutPlan::NoteNode(const Node& node, const RuleAnswer& answer) {
  ShardNote note{ShardFate::kReplicated, node.name, node.type, ""};
  for (const Layout& layout : answer.outputs) {
    if (layout.spread == Spread::kReplicated) continue;
    const bool partial = layout.spread == Spread::kPartial;
    note.fate = partial ? ShardFate::kReduced : ShardFate::kSharded;
    note.text = partial ? "rows of the weight; summed over all ranks" : "output " + ToText(layout);
    break;
  }
  notes_.push_back(std::move(note));
}

Status LayoutPlan::DecideNode(const Node& node) {
  const Operator* op = analysis_.bound().op(node.id);
  if (op == nullptr) {  // an end of the graph
    NoteGathers(node);
    return Status();
  }
  NPUMESH_RETURN_IF_ERROR(CheckNode(node, *op));
  NPUMESH_ASSIGN_OR_RETURN(std::optional<RuleAnswer> answer, ApplyRule(QuestionOf(node, *op)));
  if (!answer || !ShapeIsKnown(node)) {
    NoteGathers(node);
    notes_.push_back({ShardFate::kReplicated, node.name, node.type, ""});
    return Status();
  }
  NoteNode(node, *answer);
  for (size_t port = 0; port < answer->outputs.size(); ++port) {
    if (answer->outputs[port].spread != Spread::kSplit) continue;
    layouts_[{node.id, static_cast<int>(port)}] = answer->outputs[port];
  }
  answers_[node.id] = *std::move(answer);
  return Status();
}

Status LayoutPlan::NothingSplit() const {
  for (const NodeId id : order_) {
    const Node& node = graph().node(id);
    const Operator* op = analysis_.bound().op(id);
    if (op == nullptr || !op->product) continue;
    return Error(Code::kUnsupported,
                 "node \"{}\" ({}): no axis of its operands falls into {} equal pieces, nor one of "
                 "another product; needed: a weight whose columns {} divides",
                 node.name, node.type, ranks_, ranks_);
  }
  return Error(Code::kUnsupported,
               "graph \"{}\": nothing to shard; needed: a product with a weight (MatMul)",
               graph().name());
}

Status LayoutPlan::Decide() {
  for (const NodeId id : analysis_.order()) {
    const Node& node = graph().node(id);
    if (IsInputNode(node) || IsWeightNode(node) || IsNetOutput(node)) continue;
    if (analysis_.bound().op(id) != nullptr && inference().folded(id)) continue;
    order_.push_back(id);
    NPUMESH_RETURN_IF_ERROR(DecideNode(node));
  }
  if (layouts_.empty()) return NothingSplit();
  const NodeId sink = graph().NetOutput();
  if (sink == kNoNode) return Status();
  order_.push_back(sink);
  return DecideNode(graph().node(sink));
}

// Writes the graph of one rank.
class RankWriter {
 public:
  RankWriter(const LayoutPlan& plan, int rank) : plan_(plan), rank_(rank) {}

  Result<Graph> Write();

 private:
  Result<Value> Add(Node node);
  Result<Value> AddConst(const std::string& name, const Tensor& tensor);
  Result<Value> Known(Value value, const Tensor& known, const Layout& wanted);
  Result<Value> Gathered(Value value);
  Result<Value> Input(Value value, const Layout& wanted);
  Result<Value> LocalShape(const Node& node, const Layout& layout);
  Status AddNode(const Node& node);
  std::string Unique(const std::string& base) const;

  const LayoutPlan& plan_;
  int rank_;
  Graph graph_;
  std::map<Value, Value> values_;    // of the whole graph, in this one
  std::map<Value, Value> gathered_;  // by values of the whole graph
  std::map<NodeId, NodeId> nodes_;
};

std::string RankWriter::Unique(const std::string& base) const {
  const auto taken = [&](const std::string& name) {
    return graph_.Find(name) != kNoNode || plan_.NameOfKeptNode(name);
  };
  std::string name = base;
  for (int i = 1; taken(name); ++i) name = fmt::format("{}_part{}", base, i);
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

// A value that is known before the graph runs becomes a constant.
Result<Value> RankWriter::Known(Value value, const Tensor& known, const Layout& wanted) {
  const std::string& name = plan_.graph().node(value.node).name;
  if (wanted.spread == Spread::kSplit) {
    return AddConst(name, SliceOf(known, wanted.axis, rank_, plan_.ranks()));
  }
  const bool zero = wanted.spread == Spread::kPartial && rank_ != 0;
  return AddConst(name, zero ? Tensor::Allocate(known.type()) : known);
}

Result<Value> RankWriter::Gathered(Value value) {
  if (const auto found = gathered_.find(value); found != gathered_.end()) return found->second;
  const int axis = plan_.layout(value).axis;
  const std::string name = plan_.graph().node(value.node).name + "_gather";
  std::vector<int64_t> order(static_cast<size_t>(plan_.inference().type(value).shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[static_cast<size_t>(axis)]);  // its own inverse
  Value piece = values_.at(value);
  Value permutation;
  if (axis != 0) {
    NPUMESH_ASSIGN_OR_RETURN(permutation, AddConst(name + "_axes", Int64s(order)));
    NPUMESH_ASSIGN_OR_RETURN(piece, Add(TransposeNode(name + "_before", piece, permutation)));
  }
  NPUMESH_ASSIGN_OR_RETURN(Value whole, Add(AllGatherNode(name, piece, kGroup, plan_.ranks())));
  if (axis != 0) {
    NPUMESH_ASSIGN_OR_RETURN(whole, Add(TransposeNode(name + "_after", whole, permutation)));
  }
  gathered_[value] = whole;
  return whole;
}

Result<Value> RankWriter::Input(Value value, const Layout& wanted) {
  const Tensor* known = plan_.inference().constant(value);
  if (known != nullptr) return Known(value, *known, wanted);
  if (plan_.layout(value) == wanted) return values_.at(value);
  return Gathered(value);
}

Result<Value> RankWriter::LocalShape(const Node& node, const Layout& layout) {
  Shape shape = plan_.inference().types(node.id)[0].shape;
  shape[layout.axis] /= plan_.ranks();
  return AddConst(node.name + "_shape", Int64s(shape.dims()));
}

Status RankWriter::AddNode(const Node& whole) {
  Node node = whole;
  const RuleAnswer* answer = plan_.answer(whole.id);
  const Layout output =
      answer == nullptr || answer->outputs.empty() ? Layout() : answer->outputs[0];
  const int shape_at = whole.FindInput("shape");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) continue;
    if (static_cast<int>(i) == shape_at && output.spread == Spread::kSplit) {
      NPUMESH_ASSIGN_OR_RETURN(node.inputs[i], LocalShape(whole, output));
      continue;
    }
    const Layout wanted = answer == nullptr ? Layout() : answer->inputs[i];
    NPUMESH_ASSIGN_OR_RETURN(node.inputs[i], Input(*whole.inputs[i], wanted));
    if (wanted != Layout()) node.input_descs[i].shape.reset();
  }
  if (answer != nullptr && output != Layout()) {
    for (TensorDesc& desc : node.output_descs) desc.shape.reset();
  }
  node.controls.clear();
  for (const NodeId control : whole.controls) {
    if (nodes_.contains(control)) node.controls.push_back(nodes_.at(control));
  }
  const size_t ports = node.output_descs.size();
  NPUMESH_ASSIGN_OR_RETURN(const NodeId id, graph_.Add(std::move(node)));
  nodes_[whole.id] = id;
  for (size_t port = 0; port < ports; ++port) {
    const int at = static_cast<int>(port);
    values_[{whole.id, at}] = {id, at};
  }
  if (output.spread != Spread::kPartial) return Status();
  NPUMESH_ASSIGN_OR_RETURN(const Value sum,
                           Add(AllReduceNode(whole.name + "_sum", {id, 0}, kGroup)));
  values_[{whole.id, 0}] = sum;
  return Status();
}

Result<Graph> RankWriter::Write() {
  graph_.set_name(plan_.graph().name());
  graph_.attrs() = plan_.graph().attrs();
  for (const NodeId id : plan_.graph().DataNodes()) {
    NPUMESH_RETURN_IF_ERROR(AddNode(plan_.graph().node(id)));
  }
  for (const NodeId id : plan_.order()) NPUMESH_RETURN_IF_ERROR(AddNode(plan_.graph().node(id)));
  NPUMESH_RETURN_IF_ERROR(graph_.Verify());
  return std::move(graph_);
}

Result<std::vector<TensorType>> StaticInputs(const Model& model) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> inputs, InputsOf(model));
  std::vector<TensorType> types;
  for (const InputSpec& input : inputs) {
    if (!input.declared.shape.is_static()) {
      return Error(Code::kInvalidArgument,
                   "input \"{}\": its shape {} has open dimensions; needed: a graph with static "
                   "shapes",
                   input.name, input.declared.shape);
    }
    types.push_back(input.declared);
  }
  return types;
}

}  // namespace

Result<ShardedModel> ShardModel(const Model& model, const OpRegistry& registry, int ranks) {
  if (ranks < 2) {
    return Error(Code::kInvalidArgument, "cannot shard for {} ranks; expected 2 or more", ranks);
  }
  NPUMESH_RETURN_IF_ERROR(model.graph.Verify());
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<TensorType> types, StaticInputs(model));
  const CompileOptions options;
  GraphAnalysis analysis(model, registry, nullptr, options);
  NPUMESH_RETURN_IF_ERROR(analysis.TakeInputs(types, {}));
  NPUMESH_RETURN_IF_ERROR(analysis.Infer());
  LayoutPlan plan(analysis, ranks);
  NPUMESH_RETURN_IF_ERROR(plan.Decide());
  ShardedModel sharded;
  sharded.notes = plan.notes();
  for (int rank = 0; rank < ranks; ++rank) {
    Model& mine = sharded.models.emplace_back();
    mine.name = model.name;
    mine.version = model.version;
    mine.custom_version = model.custom_version;
    mine.attrs = model.attrs;
    NPUMESH_ASSIGN_OR_RETURN(mine.graph, RankWriter(plan, rank).Write());
  }
  return sharded;
}

std::string ShardNotesAsText(const std::vector<ShardNote>& notes) {
  constexpr std::string_view kFates[] = {"sharded", "replicated", "reduced", "gathered"};
  size_t counts[4] = {};
  size_t widest = 0;
  for (const ShardNote& note : notes) widest = std::max(widest, note.node.size());
  std::string text;
  for (const ShardNote& note : notes) {
    const size_t fate = static_cast<size_t>(note.fate);
    ++counts[fate];
    const std::string line = fmt::format("{:<10}  {:<{}}  {:<16}  {}", kFates[fate], note.node,
                                         widest, note.type, note.text);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text + fmt::format("{} sharded, {} replicated, {} reduced, {} gathered\n", counts[0],
                            counts[1], counts[2], counts[3]);
}

}  // namespace npumesh
