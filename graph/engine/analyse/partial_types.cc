#include "graph/engine/analyse/partial_types.h"

#include <algorithm>
#include <set>
#include <utility>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/io/weights.h"
#include "graph/ops/core/partial_inference.h"
#include "graph/passes/analysis/node_error.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/analysis/value_flow.h"
#include "graph/passes/rewrite/constant_folding.h"

namespace npumesh {
namespace {

TensorType Unknown() {
  return {DataType::kUndefined, Shape::UnknownRank()};
}

bool Says(const TensorType& type) {
  return type.dtype != DataType::kUndefined || type.shape.has_rank();
}

void Append(std::string& key, const void* data, size_t bytes) {
  key += fmt::format("{}:", bytes);
  key.append(static_cast<const char*>(data), bytes);
}

template <typename T>
void AppendAll(std::string& key, const std::vector<T>& values) {
  Append(key, values.data(), values.size() * sizeof(T));
}

// False: an attribute of a kind that is not compared.
bool AppendAttr(std::string& key, const AttrValue& attr) {
  key += attr.kind();
  if (const auto* number = attr.get<int64_t>()) {
    Append(key, number, sizeof *number);
  } else if (const auto* real = attr.get<float>()) {
    Append(key, real, sizeof *real);
  } else if (const auto* flag = attr.get<bool>()) {
    key += *flag ? '1' : '0';
  } else if (const auto* text = attr.get<std::string>()) {
    Append(key, text->data(), text->size());
  } else if (const auto* dtype = attr.get<DataTypeAttr>()) {
    Append(key, &dtype->number, sizeof dtype->number);
  } else if (const auto* list = attr.get<ListAttr>()) {
    AppendAll(key, list->i);
    AppendAll(key, list->f);
    AppendAll(key, list->dt);
    for (const std::string& one : list->s) Append(key, one.data(), one.size());
    key += ';';
    for (const bool one : list->b) key += one ? '1' : '0';
    Append(key, list->opaque.data(), list->opaque.size());
  } else {
    return false;
  }
  return true;
}

// Everything that inference sees; empty: it cannot be said.
std::string KeyOf(const OpContext& context) {
  std::string key(context.node().type);
  for (const AttrSpec& spec : context.schema().attrs) {
    const AttrValue* const attr = context.node().FindAttr(spec.name);
    key += '|';
    if (attr != nullptr && !AppendAttr(key, *attr)) return "";
  }
  for (const TensorDesc& desc : context.node().input_descs) key += '|' + desc.layout;
  for (const TensorDesc& desc : context.node().output_descs) {
    key += fmt::format("|{}{}", static_cast<int>(desc.dtype), desc.layout);
  }
  for (int slot = 0; slot < context.slots(); ++slot) {
    key += '|';
    if (!context.has(slot)) continue;
    key += context.in(slot).ToString();
    if (const Tensor* const value = context.value(slot)) Append(key, value->data(), value->bytes());
  }
  return key;
}

// What the attributes of a weight say of its type; a file need not be there.
TensorType DeclaredWeight(const Node& node) {
  const AttrValue* const value = node.FindAttr("value");
  if (value != nullptr && value->get<TensorAttr>() != nullptr) {
    const TensorDesc& desc = *value->get<TensorAttr>()->desc;
    return {desc.dtype, desc.shape.value_or(Shape())};
  }
  const AttrValue* const shape = node.FindAttr("shape");
  const std::optional<DataType> dtype = DataTypeFromRuntime(node.IntAttr("dtype", -1));
  if (shape == nullptr || shape->get<ListAttr>() == nullptr || !dtype) return Unknown();
  return {*dtype, Shape(shape->get<ListAttr>()->i)};
}

// Known dimensions, aligned at the last one, that do not broadcast.
bool BroadcastConflict(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return false;
  for (int back = 1; back <= std::min(a.rank(), b.rank()); ++back) {
    const int64_t x = a[a.rank() - back];
    const int64_t y = b[b.rank() - back];
    if (x > 1 && y > 1 && x != y) return true;
  }
  return false;
}

// The known dimension of a product's operand over which it sums; -1: open, or no matrix.
int64_t SummedDim(const OpContext& op, const ProductTrait& product, bool left) {
  const Shape& shape = op.in(left ? product.left : product.right).shape;
  if (!shape.has_rank() || shape.rank() < 2) return kUnknownDim;
  const bool transposed = op.attr_bool(left ? product.left_transposed : product.right_transposed);
  return shape[shape.rank() - (left != transposed ? 1 : 2)];
}

// Whether known dimensions alone show that the node cannot run. Only where the rule is sure.
bool KnownConflict(const Operator& op, const OpContext& context) {
  if (op.axes.product()) {
    const int64_t left = SummedDim(context, *op.axes.product(), true);
    const int64_t right = SummedDim(context, *op.axes.product(), false);
    return left > 0 && right > 0 && left != right;
  }
  if (!op.axes.elementwise()) return false;
  for (int a = 0; a < context.slots(); ++a) {
    for (int b = a + 1; b < context.slots(); ++b) {
      if (!context.has(a) || !context.has(b)) continue;
      if (BroadcastConflict(context.in(a).shape, context.in(b).shape)) return true;
    }
  }
  return false;
}

std::string InputsText(const OpContext& context) {
  std::string text;
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (!context.has(slot)) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", context.in(slot).ToString());
  }
  return text;
}

}  // namespace

class PartialTypes::Walk {
 public:
  Walk(const Model& model, const BoundGraph& graph, const std::vector<NodeId>& order,
       GroupProvider* groups, PartialEffort effort, const PartialHelp& help)
      : model_(model), graph_(graph), order_(order), groups_(groups), effort_(effort), help_(help) {
    std::vector<bool> walked(graph.graph().nodes().size(), false);
    for (const NodeId id : order) walked[static_cast<size_t>(id)] = true;
    by_value_ = NodesReadByValue(graph, walked);
  }

  Result<PartialTypes> Run() {
    result_.known_.resize(graph_.graph().nodes().size());
    result_.title_ = fmt::format("graph \"{}\" cannot run for any input", graph_.graph().name());
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> inputs, InputsOf(model_));
    const std::vector<NodeId> data = graph_.graph().DataNodes();
    for (size_t i = 0; i < data.size(); ++i) known(data[i]).types = {inputs[i].declared};
    for (const NodeId id : order_) Visit(graph_.node(id));
    return std::move(result_);
  }

 private:
  Known& known(NodeId id) { return result_.known_[static_cast<size_t>(id)]; }
  bool read_by_value(NodeId id) const { return by_value_[static_cast<size_t>(id)]; }

  void Visit(const Node& node) {
    if (IsWeightNode(node)) {
      TakeWeight(node);
    } else if (!IsFurniture(node)) {
      VisitOperator(node);
    }
  }

  void TakeWeight(const Node& node) {
    known(node.id).types = {DeclaredWeight(node)};
    if (!read_by_value(node.id)) return;
    const Result<Tensor> weight = LoadWeight(node, model_.path);
    if (!weight.ok()) return;  // a run of the graph will say so
    known(node.id).types = {weight->type()};
    known(node.id).constants = {Aligned(*weight)};
  }

  void VisitOperator(const Node& node) {
    known(node.id).types.assign(node.output_descs.size(), Unknown());
    if (!graph_.bound(node.id)) return;
    const Operator& op = *graph_.op(node.id);
    if (op.control_flow) return TakeSubgraphs(node);
    if (op.collective && groups_ == nullptr) return;
    OpContext context = graph_.context(node.id);
    if (!TakeInputs(op, context)) return;
    Result<std::vector<TensorType>> types = Ask(op, context);
    if (help_.of_refused && (!types.ok() || std::none_of(types->begin(), types->end(), Says))) {
      if (const auto known_types = help_.of_refused(op, context)) types = *known_types;
    }
    if (!types.ok()) {
      if (SeesAllValues(op, context)) result_.contradictions_.Add(AtNode(node, types.status()));
      return;
    }
    const bool refused = std::none_of(types->begin(), types->end(), Says) && !types->empty();
    if (refused && KnownConflict(op, context)) {
      result_.contradictions_.Add(AtNode(
          node, Error(Code::kInvalidArgument,
                      "the known dimensions of its inputs do not fit, whatever the open ones "
                      "are: {}",
                      InputsText(context))));
    }
    known(node.id).types = std::move(*types);
    Fold(op, context, node.id);
  }

  void TakeSubgraphs(const Node& node) {
    if (!help_.of_subgraphs) return;
    std::vector<TensorType> inputs;
    for (const std::optional<Value>& input : node.inputs) {
      inputs.push_back(input ? result_.type(*input) : Unknown());
    }
    std::vector<TensorType> types = help_.of_subgraphs(node, inputs);
    types.resize(node.output_descs.size(), Unknown());
    known(node.id).types = std::move(types);
  }

  // False: nothing can be asked.
  bool TakeInputs(const Operator& op, OpContext& context) {
    context.set_groups(groups_);
    for (int slot = 0; slot < context.slots(); ++slot) {
      const std::optional<Value> value = graph_.SlotValue(context.node().id, slot);
      if (!value) continue;
      const TensorType& type = result_.type(*value);
      // An operator asks its inputs for their dtype, too.
      if (type.dtype == DataType::kUndefined) return false;
      if (!type.shape.has_rank() && effort_ == PartialEffort::kQuick) return false;
      context.set_in(slot, type);
    }
    for (const std::string_view port : op.value_inputs) {
      const int first = context.slot(port);
      for (int slot = first; slot < first + context.count(port); ++slot) {
        const std::optional<Value> value = graph_.SlotValue(context.node().id, slot);
        if (value) context.set_value(slot, result_.constant(*value));
      }
    }
    return true;
  }

  Result<std::vector<TensorType>> Ask(const Operator& op, const OpContext& context) {
    const std::string key = KeyOf(context);
    if (key.empty()) return InferPartly(op, context);
    const auto known = answers_.find(key);
    if (known != answers_.end()) return known->second;
    return answers_.emplace(key, InferPartly(op, context)).first->second;
  }

  static bool SeesAllValues(const Operator& op, const OpContext& context) {
    return std::all_of(op.value_inputs.begin(), op.value_inputs.end(), [&](std::string_view port) {
      const int first = context.slot(port);
      for (int slot = first; slot < first + context.count(port); ++slot) {
        if (context.has(slot) && context.value(slot) == nullptr) return false;
      }
      return true;
    });
  }

  // Values that are the same for all inputs, where a shape depends on them.
  void Fold(const Operator& op, OpContext& context, NodeId id) {
    Known& mine = known(id);
    const auto is_static = [](const TensorType& type) { return type.shape.is_static(); };
    if (!read_by_value(id) || !std::all_of(mine.types.begin(), mine.types.end(), is_static)) return;
    for (int slot = 0; slot < context.slots(); ++slot) {
      const std::optional<Value> value = graph_.SlotValue(id, slot);
      if (!value) continue;
      if (!is_static(context.in(slot))) return;
      context.set_value(slot, result_.constant(*value));
    }
    if (!op.infer(context).ok()) return;
    Result<std::optional<std::vector<Tensor>>> folded = FoldConstants(op, context);
    if (folded.ok() && *folded) mine.constants = std::move(**folded);
  }

  const Model& model_;
  const BoundGraph& graph_;
  const std::vector<NodeId>& order_;
  GroupProvider* groups_;
  PartialEffort effort_;
  const PartialHelp& help_;
  std::vector<bool> by_value_;  // by node id
  Answers answers_;
  PartialTypes result_;
};

Result<PartialTypes> PartialTypes::Of(const Model& model, const BoundGraph& graph,
                                      const std::vector<NodeId>& order, GroupProvider* groups,
                                      PartialEffort effort, const PartialHelp& help) {
  return Walk(model, graph, order, groups, effort, help).Run();
}

const TensorType& PartialTypes::type(Value value) const {
  static const auto* const unknown = new TensorType(Unknown());
  const std::vector<TensorType>& types = known_[static_cast<size_t>(value.node)].types;
  const auto port = static_cast<size_t>(value.port);
  return port < types.size() ? types[port] : *unknown;
}

const Tensor* PartialTypes::constant(Value value) const {
  const std::vector<Tensor>& constants = known_[static_cast<size_t>(value.node)].constants;
  const auto port = static_cast<size_t>(value.port);
  return port < constants.size() ? &constants[port] : nullptr;
}

Status CheckKnownTypes(const Model& model, const OpRegistry& registry, GroupProvider* groups) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> inputs, InputsOf(model));
  const bool open = std::any_of(inputs.begin(), inputs.end(), [](const InputSpec& input) {
    return !input.declared.shape.is_static();
  });
  if (!open) return Status();
  const BoundGraph bound(model.graph, registry);
  const std::vector<bool> needed = NeededNodes(bound);
  NPUMESH_ASSIGN_OR_RETURN(std::vector<NodeId> order, model.graph.StableOrder());
  std::erase_if(order, [&](NodeId id) { return !needed[static_cast<size_t>(id)]; });
  NPUMESH_ASSIGN_OR_RETURN(const PartialTypes types,
                           PartialTypes::Of(model, bound, order, groups, PartialEffort::kQuick));
  return types.Contradictions();
}

void DescribePartly(const PartialTypes& types, Graph& graph) {
  const auto describe = [&](Value value, TensorDesc& desc) {
    const Node& producer = graph.node(value.node);
    const TensorType& type = types.type(value);
    if (IsInputNode(producer) || IsWeightNode(producer) || type.dtype == DataType::kUndefined) {
      return;
    }
    desc.dtype = type.dtype;
    if (type.shape.has_rank()) desc.shape = type.shape;
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    Node& node = graph.node(static_cast<NodeId>(i));
    if (node.removed) continue;
    for (size_t port = 0; port < node.output_descs.size(); ++port) {
      describe({node.id, static_cast<int>(port)}, node.output_descs[port]);
    }
    for (size_t port = 0; port < node.inputs.size(); ++port) {
      if (node.inputs[port]) describe(*node.inputs[port], node.input_descs[port]);
    }
  }
}

}  // namespace npumesh
