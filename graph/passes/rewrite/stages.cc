#include "graph/passes/rewrite/stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/ir/node_draft.h"
#include "graph/ir/node_kind.h"
#include "graph/passes/analysis/value_flow.h"
#include "graph/passes/schedule/execution_order.h"

namespace npumesh {
namespace {

bool IsLate(const BoundGraph& graph, NodeId id) {
  const Operator* op = graph.op(id);
  return op != nullptr && op->late();
}

// Nodes that must have run before the node can be inferred, which reads what they compute.
// An input that decides no shapes never becomes known; inference says so.
std::vector<NodeId> AwaitedBy(const BoundGraph& graph, const std::vector<bool>& known_late,
                              NodeId id) {
  std::vector<NodeId> producers = ProducersOfValueInputs(graph, id);
  std::erase_if(producers, [&](NodeId producer) {
    return !known_late[static_cast<size_t>(producer)] || IsInputNode(graph.node(producer));
  });
  return producers;
}

// By node id: the stage a node belongs to. -1: not in `order`.
class StageNumbers {
 public:
  StageNumbers(const BoundGraph& graph, const std::vector<NodeId>& order)
      : graph_(graph),
        numbers_(graph.graph().nodes().size(), -1),
        known_late_(NodesKnownLate(graph, order)) {
    const std::set<NodeId> placed(order.begin(), order.end());
    for (const InPlaceWrite& write : graph.writes()) {
      if (placed.count(write.node) > 0) written_[graph.StorageRoot(write.target)] = 0;
    }
    for (const NodeId id : order) Place(id);
    const NodeId sink = graph.graph().NetOutput();
    if (sink != kNoNode) numbers_[static_cast<size_t>(sink)] = last_;
  }

  int operator[](NodeId id) const { return numbers_[static_cast<size_t>(id)]; }
  int count() const { return last_ + 1; }

 private:
  // The first stage in which a reader of the node can be.
  int After(NodeId id) const { return (*this)[id] + (IsLate(graph_, id) ? 1 : 0); }

  void Place(NodeId id) {
    const Node& node = graph_.node(id);
    int number = 0;
    for (const std::optional<Value>& input : node.inputs) {
      if (input) number = std::max(number, After(input->node));
    }
    for (const NodeId producer : AwaitedBy(graph_, known_late_, id))
      number = std::max(number, (*this)[producer] + 1);
    for (const NodeId control : node.controls) number = std::max(number, After(control));
    if (graph_.HasEffect(id)) number = std::max(number, effects_);
    for (const Value root : WrittenStorage(node)) number = std::max(number, written_[root]);
    numbers_[static_cast<size_t>(id)] = number;
    const int after = After(id);
    if (graph_.HasEffect(id)) effects_ = after;
    for (const Value root : WrittenStorage(node)) written_[root] = after;
    last_ = std::max(last_, after);
  }

  // What the node reads or writes of the storage that a node overwrites.
  std::vector<Value> WrittenStorage(const Node& node) const {
    std::vector<Value> roots;
    if (written_.empty()) return roots;
    for (const std::optional<Value>& input : node.inputs) {
      if (!input) continue;
      const Value root = graph_.StorageRoot(*input);
      if (written_.count(root) > 0) roots.push_back(root);
    }
    return roots;
  }

  const BoundGraph& graph_;
  std::vector<int> numbers_;
  std::vector<bool> known_late_;  // by node id
  std::map<Value, int> written_;  // by storage root: the earliest stage for its next user
  int effects_ = 0;               // the earliest stage for the next node with an effect
  int last_ = 0;
};

class Splitter {
 public:
  Splitter(const Model& model, const BoundGraph& bound, const std::vector<NodeId>& order)
      : model_(model), bound_(bound), order_(order), numbers_(bound, order) {
    const std::vector<NodeId> inputs = model.graph.DataNodes();
    for (const NodeId id : inputs) {
      slots_[{id, 0}] = next_slot_++;
      next_index_ = std::max(next_index_, bound.node(id).IntAttr("index", 0) + 1);
    }
  }

  Result<StagedModel> Run() {
    parts_.resize(static_cast<size_t>(numbers_.count()));
    for (Part& part : parts_) {
      Model& model = part.stage.model;
      model.name = model_.name;
      model.path = model_.path;
      model.graph = Graph(model_.graph.name());
      model.graph.attrs() = model_.graph.attrs();
    }
    const NodeId sink = model_.graph.NetOutput();
    for (const NodeId id : order_) {
      if (id != sink) NPUMESH_RETURN_IF_ERROR(Place(id));
    }
    NPUMESH_RETURN_IF_ERROR(Clone(sink, part(sink)));
    return Finish();
  }

 private:
  struct Part {
    Stage stage;
    std::map<Value, Value> values;        // of the whole graph -> of the stage
    std::map<NodeId, NodeId> nodes;       // the same for control edges
    std::map<NodeId, SlotNumber> inputs;  // Data nodes of the stage
    std::map<Value, int> output_index;    // of the whole graph -> graph output of the stage
    std::vector<Value> outputs;           // of the stage
  };

  Part& part(NodeId id) { return parts_[static_cast<size_t>(numbers_[id])]; }

  Status Place(NodeId id) {
    const Node& node = bound_.node(id);
    if (IsInputNode(node) || IsWeightNode(node)) return Status();  // wherever they are read
    return IsLate(bound_, id) ? PlaceLate(node, part(id)) : Clone(id, part(id));
  }

  // Copies a node into a stage, reading there.
  Status Clone(NodeId id, Part& part) {
    Node copy = bound_.node(id);
    for (std::optional<Value>& input : copy.inputs) {
      if (!input) continue;
      NPUMESH_ASSIGN_OR_RETURN(input, Import(*input, part));
    }
    std::erase_if(copy.controls, [&](NodeId control) { return part.nodes.count(control) == 0; });
    for (NodeId& control : copy.controls) control = part.nodes.at(control);
    return Add(id, std::move(copy), part);
  }

  Status Add(NodeId id, Node copy, Part& part) {
    const auto ports = static_cast<int>(copy.output_descs.size());
    NPUMESH_ASSIGN_OR_RETURN(const NodeId added, part.stage.model.graph.Add(std::move(copy)));
    part.nodes[id] = added;
    for (int port = 0; port < ports; ++port) part.values[{id, port}] = {added, port};
    return Status();
  }

  Status PlaceLate(const Node& node, Part& part) {
    LateNode late;
    late.node = node;
    for (const std::optional<Value>& input : node.inputs) {
      int output = -1;
      if (input) {
        NPUMESH_RETURN_IF_ERROR(Import(*input, part).status());
        output = OutputIndex(*input, part);
      }
      late.inputs.push_back(output);
    }
    late.output_slots.assign(node.output_descs.size(), kNoSlot);
    late_index_[node.id] = part.stage.late.size();
    part.stage.late.push_back(std::move(late));
    return Status();
  }

  // The value in a stage that reads it.
  Result<Value> Import(Value value, Part& reader) {
    const auto known = reader.values.find(value);
    if (known != reader.values.end()) return known->second;
    const Node& producer = bound_.node(value.node);
    if (IsInputNode(producer) || IsWeightNode(producer)) {
      Node copy = producer;
      copy.inputs.assign(copy.inputs.size(), std::nullopt);
      copy.controls.clear();
      NPUMESH_RETURN_IF_ERROR(Add(producer.id, std::move(copy), reader));
      const Value local = reader.values.at(value);
      if (IsInputNode(producer)) reader.inputs[local.node] = slots_.at(value);
      return local;
    }
    if (IsRefData(bound_.node(bound_.StorageRoot(value).node))) {
      return ImportAlias(value, reader);
    }
    return ImportSlot(value, reader);
  }

  // What lives in a RefData is reached through the RefData, so that writing there keeps meaning it.
  Result<Value> ImportAlias(Value value, Part& reader) {
    if (!bound_.op(value.node)->view) {
      NPUMESH_ASSIGN_OR_RETURN(const Value ref, Import(*bound_.StorageSource(value), reader));
      return reader.values[value] = ref;
    }
    NPUMESH_RETURN_IF_ERROR(Clone(value.node, reader));
    return reader.values.at(value);
  }

  Result<Value> ImportSlot(Value value, Part& reader) {
    const SlotNumber slot = SlotOf(value);
    Node data = MakeNode({.type = "Data",
                          .name = fmt::format("{}:{}", bound_.node(value.node).name, value.port),
                          .attrs = {{"index", AttrValue::Int(next_index_ + slot)},
                                    {std::string(kCrossedCut), AttrValue::Bool(true)}}});
    data.output_descs[0].device_type = "CPU";
    NPUMESH_ASSIGN_OR_RETURN(const NodeId added, reader.stage.model.graph.Add(std::move(data)));
    reader.inputs[added] = slot;
    return reader.values[value] = {added, 0};
  }

  // The slot in which a value waits for later stages.
  SlotNumber SlotOf(Value value) {
    const auto [known, added] = slots_.try_emplace(value, next_slot_);
    if (!added) return known->second;
    ++next_slot_;
    Part& producer = part(value.node);
    const auto late = late_index_.find(value.node);
    if (late != late_index_.end()) {
      producer.stage.late[late->second].output_slots[static_cast<size_t>(value.port)] =
          known->second;
    } else {
      const int output = OutputIndex(value, producer);
      producer.stage.output_slots[static_cast<size_t>(output)] = known->second;
    }
    return known->second;
  }

  int OutputIndex(Value value, Part& part) {
    const auto [known, added] =
        part.output_index.try_emplace(value, static_cast<int>(part.outputs.size()));
    if (added) {
      part.outputs.push_back(part.values.at(value));
      part.stage.output_slots.push_back(kNoSlot);
    }
    return known->second;
  }

  bool UpdatesUnseen(NodeId id) const {
    return std::any_of(bound_.writes().begin(), bound_.writes().end(),
                       [&](const InPlaceWrite& write) {
                         return write.node == id && bound_.UpdatedUnseen(write.target);
                       });
  }

  // The NetOutput of a stage that others follow.
  Status AddSink(Part& part) {
    NodeDraft draft = {
        .type = "NetOutput", .name = bound_.node(model_.graph.NetOutput()).name, .outputs = {}};
    for (size_t i = 0; i < part.outputs.size(); ++i) {
      draft.inputs.emplace_back(fmt::format("input{}", i), part.outputs[i]);
    }
    Node sink = MakeNode(std::move(draft));
    // What no output shows is needed all the same, or it would not be in the order.
    for (const auto& [node, local] : part.nodes) {
      if (UpdatesUnseen(node)) sink.controls.push_back(local);
    }
    return part.stage.model.graph.Add(std::move(sink)).status();
  }

  Result<StagedModel> Finish() {
    StagedModel result;
    result.slots = next_slot_;
    for (size_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      part.stage.model.graph.attrs().insert_or_assign(std::string(kStageNumber),
                                                      AttrValue::Int(static_cast<int64_t>(i)));
      if (i + 1 < parts_.size()) {
        NPUMESH_RETURN_IF_ERROR(AddSink(part));
      } else {
        part.stage.output_slots.assign(bound_.node(model_.graph.NetOutput()).inputs.size(),
                                       kNoSlot);
      }
      for (const NodeId id : part.stage.model.graph.DataNodes()) {
        part.stage.input_slots.push_back(part.inputs.at(id));
      }
      result.stages.push_back(std::move(part.stage));
    }
    return result;
  }

  const Model& model_;
  const BoundGraph& bound_;
  const std::vector<NodeId>& order_;
  StageNumbers numbers_;
  std::vector<Part> parts_;
  std::map<Value, SlotNumber> slots_;
  std::map<NodeId, size_t> late_index_;  // in its stage
  SlotNumber next_slot_ = 0;
  int64_t next_index_ = 0;
};

}  // namespace

bool NeedsStages(const BoundGraph& graph, DeadNodes dead) {
  const std::vector<bool> needed = NeededNodes(graph, nullptr, dead);
  Result<std::vector<NodeId>> order = graph.graph().StableOrder();
  if (!order.ok()) return false;
  std::erase_if(*order, [&](NodeId id) { return !needed[static_cast<size_t>(id)]; });
  const std::vector<bool> known_late = NodesKnownLate(graph, *order);
  return std::any_of(order->begin(), order->end(), [&](NodeId id) {
    return IsLate(graph, id) || !AwaitedBy(graph, known_late, id).empty();
  });
}

Result<StagedModel> SplitStages(const Model& model, const OpRegistry& registry, DeadNodes dead) {
  if (model.graph.NetOutput() == kNoNode) {
    return Error(Code::kCorrupt, "graph \"{}\" has no NetOutput", model.graph.name());
  }
  const BoundGraph bound(model.graph, registry);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           ExecutionOrder(bound, NeededNodes(bound, nullptr, dead)));
  return Splitter(model, bound, order).Run();
}

}  // namespace npumesh
