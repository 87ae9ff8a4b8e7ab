#include "graph/passes/analysis/overwrites.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "graph/ir/node_draft.h"
#include "graph/ir/node_kind.h"
#include "graph/passes/analysis/storages.h"
#include "graph/passes/analysis/value_flow.h"

namespace npumesh {
namespace {

// Collects the changes first, because the analysis looks at the graph as it was.
class Resolver {
 public:
  // `order`: all nodes, producers first.
  Resolver(const BoundGraph& bound, const std::vector<NodeId>& order, Storages& storages)
      : bound_(bound), known_late_(NodesKnownLate(bound, order)), storages_(storages) {}

  void Visit(const Node& node) {
    if (node.removed || IsShapeQuery(bound_, node.id)) return;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i]) continue;
      const Storage* const storage = storages_.Find(*node.inputs[i]);
      if (storage == nullptr) continue;
      const Value seen = Resolve(*storage, node, static_cast<int>(i));
      if (seen != *node.inputs[i]) inputs_.push_back({node.id, i, seen});
    }
  }

  Status Apply(Graph& graph) {
    for (Node& node : added_) NPUMESH_RETURN_IF_ERROR(graph.Add(std::move(node)).status());
    for (const auto& [id, input, value] : inputs_) graph.node(id).inputs[input] = value;
    for (const auto& [before, after] : controls_) graph.node(after).controls.push_back(before);
    return Status();
  }

 private:
  Value Resolve(const Storage& storage, const Node& node, int input) {
    const Value value = *node.inputs[static_cast<size_t>(input)];
    if (IsTarget(storage, node.id, input)) return Target(storage, node.id, value);
    if (IsViewedInput(node, input)) {
      const int level = storages_.Level(storage, node.id);
      const bool seen = storages_.SeenLevel(storage, value).has_value();
      return seen || StaysWhole(storage, level) ? value : Name(storage, level, value, node.id);
    }
    return Read(storage, node.id, value);
  }

  static bool IsTarget(const Storage& storage, NodeId id, int input) {
    return std::any_of(
        storage.writers.begin(), storage.writers.end(),
        [&](const StorageWriter& writer) { return writer.node == id && writer.input == input; });
  }

  bool IsViewedInput(const Node& node, int input) const {
    return bound_.bound(node.id) && bound_.op(node.id)->view &&
           bound_.context(node.id).input_index(0) == input;
  }

  // A target is a place, so a view in front of it only says its shape.
  Value Target(const Storage& storage, NodeId writer, Value value) {
    const int level = storages_.Level(storage, writer);
    const bool in_place = storages_.SeenLevel(storage, value).value_or(-1) == level;
    if (in_place && !NeedsVariable(storage)) return value;
    return Name(storage, level, value, writer);
  }

  Value Read(const Storage& storage, NodeId reader, Value value) {
    const std::optional<int> seen = storages_.SeenLevel(storage, value);
    const int level = seen.value_or(storages_.Level(storage, reader));
    if (StaysWhole(storage, level)) return value;
    if (static_cast<size_t>(level) < storage.writers.size()) {
      const NodeId next = storage.writers[static_cast<size_t>(level)].node;
      const bool last = IsNetOutput(bound_.node(reader));
      if (last || storages_.Reaches(next, reader)) return Copy(storage, level, value);
      storages_.AddEdge(reader, next);
    }
    return seen ? value : Name(storage, level, value, reader);
  }

  // What a storage holds after `level` writes, in the shape of `like`, for `reader`.
  Value Name(const Storage& storage, int level, Value like, NodeId reader) {
    const Value base = Base(storage, level);
    if (SameShape(base, like)) {
      AwaitHiddenWriter(storage, level, reader);
      return base;
    }
    if (ChangesType(base) || ChangesType(like)) {
      if (level > 0) Await(storage.writers[static_cast<size_t>(level) - 1].node, reader);
      return like;
    }
    return InShapeOf(like, base, HiddenWriter(storage, level));
  }

  Value Copy(const Storage& storage, int level, Value like) {
    const NodeId writer = storage.writers[static_cast<size_t>(level)].node;
    if (ChangesType(like)) return Move(like, writer);
    const Value base = Base(storage, level);
    const Value copy = Move(base, writer);
    AwaitHiddenWriter(storage, level, copy.node);
    return SameShape(base, like) ? copy : InShapeOf(like, copy, kNoNode);
  }

  // No node overwrites the root itself: the first writer of a constant gets a copy of it, and so
  // does that of what needs a variable.
  bool StaysWhole(const Storage& storage, int level) const {
    if (level > 0) return false;
    return IsWeightNode(bound_.node(storage.root.node)) || NeedsVariable(storage);
  }

  // What may be known while compiling, and is updated without an output that shows it: who reads it
  // afterwards must not take it for the known value.
  bool NeedsVariable(const Storage& storage) const {
    return !known_late_[static_cast<size_t>(storage.root.node)] &&
           bound_.UpdatedUnseen(storage.root);
  }

  // The youngest value that names the storage after `level` writes.
  Value Base(const Storage& storage, int level) {
    for (int i = level; i-- > 0;) {
      const StorageWriter& writer = storage.writers[static_cast<size_t>(i)];
      if (writer.has_port) return writer.result;
    }
    return NeedsVariable(storage) ? Move(storage.root, storage.writers[0].node) : storage.root;
  }

  // The last of `level` writers where no output shows its update; else kNoNode.
  static NodeId HiddenWriter(const Storage& storage, int level) {
    if (level == 0) return kNoNode;
    const StorageWriter& writer = storage.writers[static_cast<size_t>(level) - 1];
    return writer.has_port ? kNoNode : writer.node;
  }

  // No data edge leads from an update that no output shows.
  void AwaitHiddenWriter(const Storage& storage, int level, NodeId reader) {
    const NodeId writer = HiddenWriter(storage, level);
    if (writer != kNoNode) Await(writer, reader);
  }

  void Await(NodeId before, NodeId after) {
    if (after >= first_added()) {
      std::vector<NodeId>& controls = added_[static_cast<size_t>(after - first_added())].controls;
      if (std::find(controls.begin(), controls.end(), before) == controls.end()) {
        controls.push_back(before);
      }
    } else {
      controls_.insert({before, after});
    }
  }

  // The value whose shape this one has, whatever it is: in-place outputs have that of their target.
  Value ShapeSource(Value value) const {
    for (;;) {
      const std::optional<Value> source = bound_.StorageSource(value);
      if (!source || bound_.op(value.node)->view) return value;
      value = *source;
    }
  }

  // A variable has the shape of the value that it starts with.
  bool SameShape(Value a, Value b) const {
    return ShapeSource(Original(a)) == ShapeSource(Original(b));
  }

  Value Original(Value value) const {
    return value.node < first_added() ? value : *NodeOf(value.node).inputs[0];
  }

  // A view on the way to the root gives the bytes another type.
  bool ChangesType(Value value) const {
    for (std::optional<Value> at = Original(value); at; at = bound_.StorageSource(*at)) {
      const Operator* const op = bound_.op(at->node);
      if (op != nullptr && op->retypes) return true;
    }
    return false;
  }

  // The Reshape is a view, which sees the value where it stands: after `writer`, if there is one.
  Value InShapeOf(Value like, Value value, NodeId writer) {
    const auto [known, added] = reshaped_.try_emplace({like, value, writer});
    if (!added) return known->second;
    const std::string& shaped = bound_.node(like.node).name;
    const Value shape = AddNode("Shape", fmt::format("{}/shape_{}", shaped, like.port),
                                {{"x", like}}, DataType::kInt64);
    added_.back().attrs["dtype"] = AttrValue::Type(DataType::kInt64);
    known->second = AddNode("Reshape", fmt::format("{}/as_{}", NodeOf(value.node).name, shaped),
                            {{"x", value}, {"shape", shape}}, DataType::kUndefined);
    if (writer != kNoNode) Await(writer, known->second.node);
    return known->second;
  }

  // What the value holds before `writer` runs.
  Value Move(Value value, NodeId writer) {
    const auto [known, added] = copies_.try_emplace({value, writer});
    if (!added) return known->second;
    const Node& producer = NodeOf(value.node);
    const DataType dtype = producer.output_descs[static_cast<size_t>(value.port)].dtype;
    return known->second = AddNode(
               "TensorMove", fmt::format("{}/before_{}", producer.name, bound_.node(writer).name),
               {{"x", value}}, dtype);
  }

  Value AddNode(std::string type, std::string name,
                std::vector<std::pair<std::string, Value>> inputs, DataType dtype) {
    const auto id = static_cast<NodeId>(first_added() + static_cast<NodeId>(added_.size()));
    added_.push_back(MakeNode({.type = std::move(type),
                               .name = UniqueName(std::move(name)),
                               .inputs = std::move(inputs),
                               .dtype = dtype}));
    return {id, 0};
  }

  std::string UniqueName(std::string name) {
    const auto taken = [this](const std::string& wanted) {
      return bound_.graph().Find(wanted) != kNoNode || names_.count(wanted) > 0;
    };
    std::string unique = name;
    for (int i = 1; taken(unique); ++i) unique = fmt::format("{}_{}", name, i);
    names_.insert(unique);
    return unique;
  }

  NodeId first_added() const { return static_cast<NodeId>(bound_.graph().nodes().size()); }
  const Node& NodeOf(NodeId id) const {
    return id < first_added() ? bound_.node(id) : added_[static_cast<size_t>(id - first_added())];
  }

  struct InputChange {
    NodeId node;
    size_t input;
    Value value;
  };

  const BoundGraph& bound_;
  const std::vector<bool> known_late_;  // by node id
  Storages& storages_;
  std::vector<InputChange> inputs_;
  std::set<std::pair<NodeId, NodeId>> controls_;
  std::vector<Node> added_;
  std::set<std::string> names_;                       // of added nodes
  std::map<std::pair<Value, NodeId>, Value> copies_;  // by value and writer
  // By shape, value and hidden writer.
  std::map<std::tuple<Value, Value, NodeId>, Value> reshaped_;
};

// Outputs of nodes that run graphs, in whose memory a node writes.
std::set<Value> OverwrittenResults(const BoundGraph& bound) {
  std::set<Value> results;
  for (const InPlaceWrite& write : bound.writes()) {
    const Value root = bound.StorageRoot(write.target);
    const Operator* const op = bound.op(root.node);
    if (op != nullptr && op->control_flow) results.insert(root);
  }
  return results;
}

// A node that hands its input "x" on as "y".
Node OneToOne(std::string type, std::string name, Value x) {
  return MakeNode({.type = std::move(type), .name = std::move(name), .inputs = {{"x", x}}});
}

Status OwnOverwrittenResults(Graph& graph, const OpRegistry& registry) {
  for (const Value result : OverwrittenResults(BoundGraph(graph, registry))) {
    const std::string name = fmt::format("{}/own_{}", graph.node(result.node).name, result.port);
    NPUMESH_ASSIGN_OR_RETURN(const NodeId id, graph.Add(OneToOne("TensorMove", name, result)));
    graph.ReplaceUses(result, {id, 0});
    graph.node(id).inputs[0] = result;
  }
  return Status();
}

Status NameHandedThrough(Graph& graph) {
  const NodeId sink = graph.NetOutput();
  if (sink == kNoNode) return Status();
  for (size_t i = 0; i < graph.node(sink).inputs.size(); ++i) {
    const std::optional<Value> result = graph.node(sink).inputs[i];
    if (!result || !IsData(graph.node(result->node))) continue;
    const std::string name = fmt::format("{}/through_{}", graph.node(result->node).name, i);
    NPUMESH_ASSIGN_OR_RETURN(const NodeId id, graph.Add(OneToOne("Identity", name, *result)));
    graph.node(sink).inputs[i] = Value{id, 0};
  }
  return Status();
}

bool HasWrites(const Graph& graph, const OpRegistry& registry) {
  return !BoundGraph(graph, registry).writes().empty();
}

}  // namespace

Status SeparateResults(Model& model, const OpRegistry& registry) {
  const bool writes = HasWrites(model.graph, registry) ||
                      std::any_of(model.subgraphs.begin(), model.subgraphs.end(),
                                  [&](const Graph& graph) { return HasWrites(graph, registry); });
  if (!writes) return Status();
  NPUMESH_RETURN_IF_ERROR(OwnOverwrittenResults(model.graph, registry));
  for (Graph& graph : model.subgraphs) {
    NPUMESH_RETURN_IF_ERROR(OwnOverwrittenResults(graph, registry));
    NPUMESH_RETURN_IF_ERROR(NameHandedThrough(graph));
  }
  return Status();
}

Status ResolveOverwrites(Graph& graph, const OpRegistry& registry) {
  const BoundGraph bound(graph, registry);
  if (bound.writes().empty()) return Status();
  NPUMESH_ASSIGN_OR_RETURN(Storages storages, Storages::Of(bound));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.StableOrder());
  Resolver resolver(bound, order, storages);
  for (const Node& node : graph.nodes()) resolver.Visit(node);
  return resolver.Apply(graph);
}

}  // namespace npumesh
