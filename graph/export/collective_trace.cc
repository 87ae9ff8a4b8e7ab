#include "graph/export/collective_trace.h"

#include <algorithm>

#include "graph/engine/analyse/inference.h"
#include "graph/io/weights.h"
#include "graph/ir/node_kind.h"
#include "graph/passes/analysis/operator_check.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/schedule/execution_order.h"
#include "graph/session/offline_groups.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Type of a weight whose value shapes cannot depend on; nullopt: it has to be read.
std::optional<TensorType> TypeOnly(const Node& node) {
  if (IsFileConstant(node)) {
    const AttrValue* shape = node.FindAttr("shape");
    const auto dtype = DataTypeFromRuntime(node.IntAttr("dtype", -1));
    if (shape == nullptr || shape->get<ListAttr>() == nullptr || !dtype) return std::nullopt;
    const TensorType type{*dtype, Shape(shape->get<ListAttr>()->i)};
    const bool sound = BitsOf(*dtype) != 0 && type.shape.Check().ok() && type.shape.is_static() &&
                       BytesOf(*dtype, static_cast<uint64_t>(type.shape.elements()));
    if (!sound || type.bytes() <= kMaxShapeValueBytes) return std::nullopt;
    return type;
  }
  const AttrValue* value = node.FindAttr("value");
  const auto* tensor = value == nullptr ? nullptr : value->get<TensorAttr>();
  if (tensor == nullptr || tensor->data->size() <= kMaxShapeValueBytes) return std::nullopt;
  const Result<Tensor> weight = LoadWeight(node, "");
  return weight.ok() ? std::optional(weight->type()) : std::nullopt;
}

// The graph with large weights as inputs of known type, so that inference need not read them.
class PaperGraph {
 public:
  explicit PaperGraph(const Model& model) : graph_(model.graph), path_(model.path) {
    for (const Node& node : model.graph.nodes()) {
      if (node.removed || !IsWeightNode(node)) continue;
      const std::optional<TensorType> type = TypeOnly(node);
      if (!type) continue;
      inputs_[node.id] = {*type, Tensor()};
      Node& paper = graph_.node(node.id);
      paper.type = "Data";
      paper.attrs.clear();
    }
    const Result<std::vector<InputSpec>> specs = InputsOf(model);
    complete_ = specs.ok();
    if (!specs.ok()) return;
    for (const InputSpec& spec : *specs) {
      complete_ = complete_ && spec.declared.shape.is_static() && BitsOf(spec.declared.dtype) != 0;
      inputs_[model.graph.Find(spec.name)] = {spec.declared, Tensor()};
    }
  }

  const Graph& graph() const { return graph_; }
  const std::string& path() const { return path_; }
  const std::map<NodeId, Inference::Input>& inputs() const { return inputs_; }
  // Every input has a type.
  bool complete() const { return complete_; }

 private:
  Graph graph_;
  std::string path_;
  std::map<NodeId, Inference::Input> inputs_;
  bool complete_ = false;
};

class Tracer {
 public:
  Tracer(const PaperGraph& paper, const OpRegistry& registry, OfflineGroups& groups)
      : paper_(paper),
        bound_(paper.graph(), registry),
        groups_(groups),
        inference_(bound_, {&groups, 1}) {}

  Result<CollectiveTrace> Run() {
    std::vector<bool> needed = NeededNodes(bound_);
    for (const Node& node : paper_.graph().nodes()) {
      if (!node.removed && Communicates(node)) NeedWithProducers(node.id, &needed);
    }
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, ExecutionOrder(bound_, needed));
    WeightCache weights;
    typed_ = paper_.complete() && CheckOperators(bound_, needed).ok() &&
             inference_.Run(order, paper_.inputs(), weights, paper_.path()).ok();
    for (const NodeId id : order) {
      if (Communicates(bound_.node(id))) NPUMESH_RETURN_IF_ERROR(Add(bound_.node(id)));
    }
    if (typed_) AddOutputs();
    return std::move(trace_);
  }

 private:
  void AddOutputs() {
    const NodeId sink = paper_.graph().NetOutput();
    if (sink == kNoNode) return;
    for (const std::optional<Value>& value : bound_.node(sink).inputs) {
      trace_.outputs.push_back(value ? inference_.type(*value) : TensorType());
    }
  }

  // Kernels that hold a collective inside name a group as well.
  bool Communicates(const Node& node) const {
    const Operator* op = bound_.op(node.id);
    const AttrValue* group = node.FindAttr("group");
    return (op != nullptr && op->collective) ||
           (op == nullptr && group != nullptr && group->get<std::string>() != nullptr &&
            !group->get<std::string>()->empty());
  }

  void NeedWithProducers(NodeId id, std::vector<bool>* needed) const {
    std::vector<NodeId> pending = {id};
    while (!pending.empty()) {
      const NodeId at = pending.back();
      pending.pop_back();
      if ((*needed)[static_cast<size_t>(at)]) continue;
      (*needed)[static_cast<size_t>(at)] = true;
      const Node& node = paper_.graph().node(at);
      for (const auto& input : node.inputs) {
        if (input) pending.push_back(input->node);
      }
      pending.insert(pending.end(), node.controls.begin(), node.controls.end());
    }
  }

  Status Add(const Node& node) {
    CollectiveCall call;
    call.node = node.name;
    call.type = node.type;
    const Operator* const op = bound_.op(node.id);
    call.group = op != nullptr ? GroupOf(node, *op) : node.StringAttr("group", kWorldGroup);
    const CollectiveTrait trait = op != nullptr ? *op->collective : CollectiveTrait();
    call.reduction = node.StringAttr(trait.reduction, "");
    call.root = node.IntAttr("root_rank", -1);
    call.peer = node.IntAttr(trait.peer, -1);
    if (op != nullptr) call.encounter = EncounterOf(*op);
    if (typed_) AddTypes(node, &call);
    if (trace_.MembersOf(call.group) == nullptr) {
      Result<GroupProvider::Members> members = groups_.MembersOf(call.group);
      if (!members.ok()) {
        return members.status().WithContext(fmt::format("node \"{}\" ({})", node.name, node.type));
      }
      trace_.groups.emplace_back(call.group, std::move(members->world_ranks));
    }
    trace_.calls.push_back(std::move(call));
    return Status();
  }

  void AddTypes(const Node& node, CollectiveCall* call) const {
    const OpContext& context = inference_.context(node.id);
    if (call->encounter == Encounter::kReceive) {
      call->operands = {context.out(0)};
      return;
    }
    for (const PortSpec& port : context.schema().inputs) {
      for (int i = 0; i < context.count(port.name); ++i) {
        const int slot = context.slot(port.name) + i;
        const bool is_count = port.name.find("count") != std::string_view::npos;
        if (!is_count && port.name.find("displacements") == std::string_view::npos) {
          call->operands.push_back(context.in(slot));
        }
        if (!is_count) continue;
        const Result<std::vector<int64_t>> counts = context.Ints(port.name);
        if (counts.ok()) call->counts.emplace(port.name, *counts);
      }
    }
  }

  const PaperGraph& paper_;
  BoundGraph bound_;
  OfflineGroups& groups_;
  Inference inference_;
  bool typed_ = false;
  CollectiveTrace trace_;
};

OrderedJson ToJson(const CollectiveCall& call) {
  OrderedJson operands = OrderedJson::array();
  for (const TensorType& type : call.operands) {
    operands.push_back({{"dtype", static_cast<int>(type.dtype)}, {"dims", type.shape.dims()}});
  }
  return {{"node", call.node},
          {"type", call.type},
          {"encounter", static_cast<int>(call.encounter)},
          {"group", call.group},
          {"reduction", call.reduction},
          {"root", call.root},
          {"peer", call.peer},
          {"operands", std::move(operands)},
          {"counts", call.counts}};
}

CollectiveCall CallFrom(const OrderedJson& json) {
  CollectiveCall call;
  json.at("node").get_to(call.node);
  json.at("type").get_to(call.type);
  call.encounter = static_cast<Encounter>(json.at("encounter").get<uint8_t>());
  json.at("group").get_to(call.group);
  json.at("reduction").get_to(call.reduction);
  json.at("root").get_to(call.root);
  json.at("peer").get_to(call.peer);
  for (const OrderedJson& type : json.at("operands")) {
    call.operands.push_back({static_cast<DataType>(type.at("dtype").get<int>()),
                             Shape(type.at("dims").get<std::vector<int64_t>>())});
  }
  json.at("counts").get_to(call.counts);
  return call;
}

}  // namespace

Encounter EncounterOf(const Operator& op) {
  const OpSchema& schema = op.schema;
  if (!op.collective->peer.empty()) {
    return schema.inputs.empty() ? Encounter::kReceive : Encounter::kSend;
  }
  const auto has = [&schema](std::string_view name) {
    return std::any_of(schema.inputs.begin(), schema.inputs.end(),
                       [name](const PortSpec& port) { return port.name == name; });
  };
  return has("send_counts") && has("recv_counts") ? Encounter::kPairs : Encounter::kAll;
}

const std::vector<int>* CollectiveTrace::MembersOf(const std::string& group) const {
  for (const auto& [name, members] : groups) {
    if (name == group) return &members;
  }
  return nullptr;
}

Result<CollectiveTrace> TraceCollectives(const Model& model, const OpRegistry& registry,
                                         const GroupTable& table, int rank, int world_size) {
  const PaperGraph paper(model);
  OfflineGroups groups = OfflineGroups::InWorld(table, rank, world_size);
  return Tracer(paper, registry, groups).Run();
}

std::string TraceText(const CollectiveTrace& trace) {
  OrderedJson calls = OrderedJson::array();
  for (const CollectiveCall& call : trace.calls) calls.push_back(ToJson(call));
  const OrderedJson json = {{"calls", std::move(calls)}, {"groups", trace.groups}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<CollectiveTrace> ParseTrace(const std::string& text) {
  CollectiveTrace trace;
  try {
    const OrderedJson json = OrderedJson::parse(text);
    for (const OrderedJson& call : json.at("calls")) trace.calls.push_back(CallFrom(call));
    json.at("groups").get_to(trace.groups);
  } catch (const nlohmann::json::exception& error) {
    return Error(Code::kCorrupt, "a rank sent no trace of collectives: {}", error.what());
  }
  for (const CollectiveCall& call : trace.calls) {
    if (call.encounter <= Encounter::kReceive) continue;
    return Error(Code::kCorrupt,
                 "a rank sent no trace of collectives: node \"{}\" has encounter {}", call.node,
                 static_cast<int>(call.encounter));
  }
  return trace;
}

}  // namespace npumesh
