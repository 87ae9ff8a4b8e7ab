#include "graph/passes/rewrite/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "graph/ir/node_draft.h"
#include "graph/ops/core/partial_inference.h"
#include "graph/ops/core/type_set.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/analysis/value_flow.h"

namespace npumesh {
namespace {

constexpr TypeSet kEightBitsOrFewer = kQuantised | kSmallFloats;

bool ReadByValue(const Operator& op, const OpContext& context, int slot) {
  return std::any_of(op.value_inputs.begin(), op.value_inputs.end(), [&](std::string_view port) {
    const int first = context.slot(port);
    return slot >= first && slot < first + context.count(port);
  });
}

// Slots whose elements the operator computes with, and which a rule may change.
std::vector<int> FloatSlots(const Operator& op, const OpContext& context) {
  std::vector<int> slots;
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot) || !kFloats.Contains(context.in(slot).dtype)) continue;
    if (!ReadByValue(op, context, slot)) slots.push_back(slot);
  }
  return slots;
}

// The one type of all floats; kUndefined: there is no such type, or an operand tells that the
// floats may be scales.
DataType DeclaredFloat(const Operator& op, const OpContext& context) {
  DataType declared = DataType::kUndefined;
  for (const int slot : FloatSlots(op, context)) {
    const DataType dtype = context.in(slot).dtype;
    if (declared != DataType::kUndefined && declared != dtype) return DataType::kUndefined;
    declared = dtype;
  }
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    if (kEightBitsOrFewer.Contains(context.in(slot).dtype)) return DataType::kUndefined;
  }
  return declared;
}

// The outputs where the floats are of type `to`; nullopt: the operator refuses that.
std::optional<std::vector<TensorType>> TypesIn(DataType to, const Operator& op, OpContext context) {
  for (const int slot : FloatSlots(op, context)) context.set_in(slot, {to, context.in(slot).shape});
  Result<std::vector<TensorType>> types = InferPartly(op, context);
  if (!types.ok() || types->empty()) return std::nullopt;
  for (const TensorType& type : *types) {
    if (type.dtype == DataType::kUndefined) return std::nullopt;
  }
  return *std::move(types);
}

// An output may change from one float to another, and into nothing else.
bool Fits(const TensorType& declared, const TensorType& chosen) {
  if (declared.dtype == chosen.dtype) return true;
  return kFloats.Contains(declared.dtype) && kFloats.Contains(chosen.dtype);
}

// The operator itself forbids other types.
bool KeepsTypes(const Operator& op) {
  return op.furniture() || op.late() || op.collective.has_value() || op.side_effect || !op.pure ||
         !op.in_place.empty() || op.retypes || op.precision == PrecisionClass::kKept;
}

class Chooser {
 public:
  Chooser(Graph& graph, const OpRegistry& registry, const KnownValues& values,
          const PrecisionRule& rule)
      : graph_(graph), bound_(graph, registry), values_(values), rule_(rule) {
    const std::vector<bool> all(graph.nodes().size(), true);
    decides_shapes_ = NodesReadByValue(bound_, all);
    for (const InPlaceWrite& write : bound_.writes()) {
      overwritten_.insert(bound_.StorageRoot(write.target));
    }
  }

  Status Run() {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.StableOrder());
    for (const NodeId id : order) Choose(id);
    if (chosen_.empty()) return Status();
    for (const NodeId id : order) ReadChosenTypes(id);
    return PlaceCasts();
  }

 private:
  // How a node that changes computes.
  struct Chosen {
    DataType declared = DataType::kUndefined;
    DataType dtype = DataType::kUndefined;
    std::vector<TensorType> outputs;
  };
  struct NewCast {
    Node node;
    Value source;
  };

  const Chosen* chosen(NodeId id) const {
    const auto found = chosen_.find(id);
    return found == chosen_.end() ? nullptr : &found->second;
  }

  // ---- which type ----

  // A write that no output shows, or one into an input of the graph, has to reach its storage.
  bool SharesOverwritten(NodeId id) const {
    if (overwritten_.empty()) return false;
    const Node& node = graph_.node(id);
    for (size_t port = 0; port < node.output_descs.size(); ++port) {
      const Value value = {id, static_cast<int>(port)};
      const Value root = bound_.StorageRoot(value);
      const bool kept = root.node != id && overwritten_.contains(root);
      if (kept || bound_.UpdatedUnseen(value)) return true;
    }
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const auto& input) { return input && bound_.UpdatedUnseen(*input); });
  }

  bool MayChange(NodeId id) const {
    return bound_.bound(id) && !KeepsTypes(*bound_.op(id)) && !bound_.op(id)->axes.shape_query() &&
           !rule_.Keeps(bound_.node(id)) && !bound_.HasEffect(id) &&
           !decides_shapes_[static_cast<size_t>(id)] && !SharesOverwritten(id);
  }

  // The node with what is known of its inputs; nullopt: a type is unknown.
  std::optional<OpContext> ContextOf(NodeId id) const {
    OpContext context = bound_.context(id);
    for (int slot = 0; slot < context.slots(); ++slot) {
      const std::optional<Value> value = bound_.SlotValue(id, slot);
      if (!value) continue;
      const TensorType& type = values_.type(*value);
      if (type.dtype == DataType::kUndefined) return std::nullopt;
      context.set_in(slot, type);
      if (ReadByValue(*bound_.op(id), context, slot)) {
        context.set_value(slot, values_.constant(*value));
      }
    }
    return context;
  }

  // The operator that makes the first float of this one.
  NodeId Before(NodeId id, const OpContext& context) const {
    for (const int slot : FloatSlots(*bound_.op(id), context)) {
      const std::optional<Value> value = bound_.SlotValue(id, slot);
      if (value && bound_.op(value->node) != nullptr) return value->node;
    }
    return kNoNode;
  }

  void Choose(NodeId id) {
    if (!MayChange(id)) return;
    const std::optional<OpContext> context = ContextOf(id);
    if (!context) return;
    const Operator& op = *bound_.op(id);
    const DataType declared = DeclaredFloat(op, *context);
    if (declared == DataType::kUndefined) return;
    const PrecisionClass precision = rule_.ClassOf(op);
    const bool follows = rule_.mixed() && precision == PrecisionClass::kGrey;
    const NodeId before = follows ? Before(id, *context) : kNoNode;
    const bool lowered = precision == PrecisionClass::kWhite || lowered_.contains(before);
    const DataType low = rule_.Preferred(DataType::kFloat, true)[0];
    std::string refused;
    for (const DataType wish : rule_.Preferred(declared, lowered)) {
      if (wish == DataType::kUndefined) break;
      if (TakeType(id, *context, declared, wish)) {
        if (lowered && wish == low) lowered_.insert(id);
        return Explain(id, declared, wish, before, refused);
      }
      refused += fmt::format("; it takes no {}", Name(wish));
    }
  }

  // False: the operator refuses the type.
  bool TakeType(NodeId id, const OpContext& context, DataType declared, DataType wish) {
    std::optional<std::vector<TensorType>> outputs = TypesIn(wish, *bound_.op(id), context);
    if (!outputs) return false;
    for (size_t port = 0; port < outputs->size(); ++port) {
      if (!Fits(values_.type({id, static_cast<int>(port)}), (*outputs)[port])) return false;
    }
    if (wish != declared) chosen_[id] = {declared, wish, *std::move(outputs)};
    return true;
  }

  // Says what was chosen, and why it is not what the mode is for.
  void Explain(NodeId id, DataType declared, DataType dtype, NodeId before,
               const std::string& refused) {
    const PrecisionClass precision = rule_.ClassOf(*bound_.op(id));
    const bool black = rule_.mixed() && precision == PrecisionClass::kBlack;
    if (dtype == declared && refused.empty() && !black) return;
    std::string why(rule_.mode());
    if (rule_.mixed()) why += fmt::format(", {}", Name(precision));
    if (lowered_.contains(before)) why += fmt::format(" after \"{}\"", graph_.node(before).name);
    const std::string what = dtype == declared
                                 ? fmt::format("stays {}", Name(dtype))
                                 : fmt::format("{} for {}", Name(dtype), Name(declared));
    Note(graph_.node(id), fmt::format("{}: {}{}", what, why, refused));
  }

  static void Note(Node& node, std::string text) {
    node.attrs.insert_or_assign(std::string(kPrecisionNote), AttrValue::String(std::move(text)));
  }

  // ---- reading the values in these types ----

  // The type that the value has now.
  DataType TypeNow(Value value) const {
    const Chosen* const producer = chosen(value.node);
    if (producer == nullptr) return values_.type(value).dtype;
    return producer->outputs[static_cast<size_t>(value.port)].dtype;
  }

  // The type in which a node reads its input.
  DataType TypeRead(NodeId id, size_t input) const {
    const Value value = *graph_.node(id).inputs[input];
    const DataType declared = values_.type(value).dtype;
    const Chosen* const reader = chosen(id);
    if (reader == nullptr || declared != reader->declared) return declared;
    const OpContext& context = bound_.context(id);
    for (int slot = 0; slot < context.slots(); ++slot) {
      if (context.input_index(slot) != static_cast<int>(input)) continue;
      return ReadByValue(*bound_.op(id), context, slot) ? declared : reader->dtype;
    }
    return declared;
  }

  void ReadChosenTypes(NodeId id) {
    if (bound_.op(id) != nullptr && bound_.op(id)->axes.shape_query()) return;
    for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
      const std::optional<Value> input = graph_.node(id).inputs[i];
      if (!input) continue;
      const DataType wanted = TypeRead(id, i);
      if (wanted == TypeNow(*input)) continue;
      const auto [known, added] = cast_of_.try_emplace({*input, wanted}, casts_.size());
      if (added) casts_.push_back(CastFor(id, i, wanted));
      reads_[{id, i}] = known->second;
    }
  }

  NewCast CastFor(NodeId reader, size_t input, DataType wanted) const {
    const Value source = *graph_.node(reader).inputs[input];
    const Node& producer = graph_.node(source.node);
    const bool back = wanted == values_.type(source).dtype;
    const Node& owner = back ? producer : graph_.node(reader);
    const std::string& port = back ? producer.output_descs[static_cast<size_t>(source.port)].name
                                   : graph_.node(reader).input_descs[input].name;
    Node node = MakeNode({.type = "Cast",
                          .name = fmt::format("{}/cast_{}", owner.name, port),
                          .inputs = {{"x", source}},
                          .attrs = {{"dst_type", AttrValue::Int(static_cast<int64_t>(wanted))}},
                          .dtype = wanted});
    Note(node,
         fmt::format("\"{}\" computes in {}", owner.name, Name(back ? TypeNow(source) : wanted)));
    return {std::move(node), source};
  }

  // ---- the graph with its casts ----

  // Numbers of the nodes in the new graph, each cast after the producer of what it reads.
  struct Numbers {
    std::vector<NodeId> nodes;  // by old number
    std::vector<NodeId> casts;  // as casts_
    Value operator()(Value old) const { return {nodes[static_cast<size_t>(old.node)], old.port}; }
  };

  Numbers NumbersWith(const std::map<NodeId, std::vector<size_t>>& casts_behind) const {
    Numbers numbers;
    numbers.casts.resize(casts_.size(), kNoNode);
    NodeId next = 0;
    for (const Node& node : graph_.nodes()) {
      numbers.nodes.push_back(node.removed ? kNoNode : next++);
      const auto casts = casts_behind.find(node.id);
      if (casts == casts_behind.end()) continue;
      for (const size_t cast : casts->second) numbers.casts[cast] = next++;
    }
    return numbers;
  }

  Node Renumbered(Node node, const Numbers& numbers) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i]) continue;
      const auto cast = reads_.find({node.id, i});
      node.inputs[i] =
          cast == reads_.end() ? numbers(*node.inputs[i]) : Value{numbers.casts[cast->second], 0};
    }
    for (NodeId& control : node.controls) control = numbers.nodes[static_cast<size_t>(control)];
    return node;
  }

  Node NamedCast(const NewCast& cast, const Graph& placed, const Numbers& numbers) const {
    Node node = cast.node;
    node.inputs = {numbers(cast.source)};
    while (graph_.Find(node.name) != kNoNode || placed.Find(node.name) != kNoNode) {
      node.name += "_";
    }
    return node;
  }

  Status PlaceCasts() {
    std::map<NodeId, std::vector<size_t>> behind;
    for (size_t i = 0; i < casts_.size(); ++i) behind[casts_[i].source.node].push_back(i);
    const Numbers numbers = NumbersWith(behind);
    Graph placed(graph_.name());
    placed.attrs() = graph_.attrs();
    placed.output_records() = graph_.output_records();
    placed.opaque() = graph_.opaque();
    for (const Node& node : graph_.nodes()) {
      if (node.removed) continue;
      NPUMESH_RETURN_IF_ERROR(placed.Add(Renumbered(node, numbers)).status());
      for (const size_t cast : behind[node.id]) {
        NPUMESH_RETURN_IF_ERROR(placed.Add(NamedCast(casts_[cast], placed, numbers)).status());
      }
    }
    graph_ = std::move(placed);
    return Status();
  }

  Graph& graph_;
  const BoundGraph bound_;
  const KnownValues& values_;
  const PrecisionRule& rule_;
  std::vector<bool> decides_shapes_;  // by node id
  std::set<Value> overwritten_;       // storages
  std::map<NodeId, Chosen> chosen_;   // nodes that change
  // White operators in the type of the mode, and grey ones after them.
  std::set<NodeId> lowered_;
  std::vector<NewCast> casts_;
  std::map<std::pair<Value, DataType>, size_t> cast_of_;  // into casts_
  std::map<std::pair<NodeId, size_t>, size_t> reads_;     // by node and input: the cast
};

}  // namespace

Status ChoosePrecision(Graph& graph, const OpRegistry& registry, const KnownValues& values,
                       const PrecisionRule& rule) {
  return rule.keeps_all() ? Status() : Chooser(graph, registry, values, rule).Run();
}

std::optional<std::vector<TensorType>> TypesInNeed(const Operator& op, const OpContext& context,
                                                   const PrecisionRule& rule) {
  if (rule.keeps_all() || KeepsTypes(op)) return std::nullopt;
  const DataType declared = DeclaredFloat(op, context);
  if (declared == DataType::kUndefined) return std::nullopt;
  for (const DataType wish : rule.Preferred(declared, false)) {
    if (wish == DataType::kUndefined) break;
    std::optional<std::vector<TensorType>> types = TypesIn(wish, op, context);
    if (!types) continue;
    for (TensorType& type : *types) {
      if (type.dtype == wish) type.dtype = declared;
    }
    return types;
  }
  return std::nullopt;
}

}  // namespace npumesh
