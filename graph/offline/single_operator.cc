#include "graph/offline/single_operator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "graph/io/layout.h"
#include "graph/io/weights.h"
#include "graph/ir/graph_builder.h"
#include "graph/ir/node_kind.h"
#include "graph/ops/core/signature.h"

namespace npumesh {
namespace {

Result<const Operator*> FindOperator(std::string_view type, const OpRegistry& registry) {
  const Operator* const op = registry.Find(type);
  if (op != nullptr && !op->furniture() && !op->control_flow) return op;
  const std::vector<std::string> nearest = registry.Nearest(type);
  return Error(Code::kUnsupported, "operator \"{}\" is {}{}", type,
               op == nullptr ? "not there" : "a part of graphs, not to be called alone",
               nearest.empty() || op != nullptr
                   ? std::string()
                   : fmt::format("; similar names: {}", fmt::join(nearest, ", ")));
}

std::string PortsText(const std::vector<PortSpec>& ports) {
  std::vector<std::string> texts;
  for (const PortSpec& port : ports) {
    texts.push_back(fmt::format("{}{}", port.name,
                                port.kind == PortKind::kOptional  ? "?"
                                : port.kind == PortKind::kDynamic ? "..."
                                                                  : ""));
  }
  return fmt::format("({})", fmt::join(texts, ", "));
}

// Which port each tensor is of: index in the schema, and element of a list.
struct PortPlace {
  size_t port = 0;
  size_t element = 0;
};

class Places {
 public:
  Places(std::string_view type, const char* side, const std::vector<PortSpec>& ports,
         const std::vector<OperatorTensor>& tensors)
      : type_(type), side_(side), ports_(ports), tensors_(tensors) {}

  Result<std::vector<PortPlace>> Find() {
    const auto lists =
        static_cast<size_t>(std::count_if(ports_.begin(), ports_.end(), [](const PortSpec& port) {
          return port.kind == PortKind::kDynamic;
        }));
    if (lists == 0) return InOrder();
    for (const OperatorTensor& tensor : tensors_) {
      if (ListOf(tensor) < ports_.size()) return ByNames();
    }
    if (lists == 1) return AroundTheList();
    return Error(Code::kInvalidArgument,
                 "operator {}: {} of {} belong to several lists {}; aclSetTensorDynamicInput, or "
                 "names such as x0, say which",
                 type_, side_, tensors_.size(), PortsText(ports_));
  }

 private:
  Status TooMany() const {
    return Error(Code::kInvalidArgument, "operator {}: {} {} are given, expected {}", type_,
                 tensors_.size(), side_, PortsText(ports_));
  }

  Result<std::vector<PortPlace>> InOrder() const {
    if (tensors_.size() > ports_.size()) return TooMany();
    std::vector<PortPlace> places;
    for (size_t i = 0; i < tensors_.size(); ++i) places.push_back({i, 0});
    return places;
  }

  // The dynamic port that a tensor names, by `list` or as the "x" of "x0"; none: ports_.size().
  size_t ListOf(const OperatorTensor& tensor) const {
    const size_t digits = tensor.name.find_last_not_of("0123456789") + 1;
    for (size_t i = 0; i < ports_.size(); ++i) {
      if (ports_[i].kind != PortKind::kDynamic) continue;
      const bool element = digits < tensor.name.size() &&
                           std::string_view(tensor.name).substr(0, digits) == ports_[i].name;
      if (tensor.list == ports_[i].name || (tensor.list.empty() && element)) return i;
    }
    return ports_.size();
  }

  // Those that name a list are its elements, in their order; the others take the other ports.
  Result<std::vector<PortPlace>> ByNames() const {
    std::vector<PortPlace> places;
    std::vector<size_t> elements(ports_.size(), 0);
    size_t next = 0;
    for (const OperatorTensor& tensor : tensors_) {
      const size_t list = ListOf(tensor);
      if (list < ports_.size()) {
        places.push_back({list, elements[list]++});
        continue;
      }
      while (next < ports_.size() && ports_[next].kind == PortKind::kDynamic) ++next;
      if (next == ports_.size()) return TooMany();
      places.push_back({next++, 0});
    }
    return places;
  }

  // One list, whose length is what the other ports leave. An optional port after the list is fed
  // only by a tensor that says it is absent.
  Result<std::vector<PortPlace>> AroundTheList() const {
    size_t list = 0;
    while (ports_[list].kind != PortKind::kDynamic) ++list;
    size_t after = 0, optional = 0;
    for (size_t i = list + 1; i < ports_.size(); ++i) {
      ++(ports_[i].kind == PortKind::kOptional ? optional : after);
    }
    for (size_t i = tensors_.size(); i-- > 0 && tensors_[i].absent() && optional > 0; --optional) {
      ++after;
    }
    if (tensors_.size() < list + after) return TooMany();
    const size_t elements = tensors_.size() - list - after;
    std::vector<PortPlace> places;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const bool inside = i >= list && i < list + elements;
      if (inside) {
        places.push_back({list, i - list});
      } else {
        places.push_back({i < list ? i : i - elements + 1, 0});
      }
    }
    return places;
  }

  std::string_view type_;
  const char* side_;
  const std::vector<PortSpec>& ports_;
  const std::vector<OperatorTensor>& tensors_;
};

std::string PortName(const std::vector<PortSpec>& ports, PortPlace place) {
  const PortSpec& port = ports[place.port];
  if (port.kind != PortKind::kDynamic) return std::string(port.name);
  return fmt::format("{}{}", port.name, place.element);
}

bool IsPrivate(const OperatorTensor& tensor) {
  return IsPrivateLayout(LayoutNumber(tensor.layout));
}

// Says in a descriptor what the tensor is.
void Describe(const OperatorTensor& tensor, TensorDesc* desc) {
  desc->dtype = tensor.type.dtype;
  desc->shape = tensor.type.shape;
  desc->layout = tensor.layout;
  if (!IsPrivate(tensor)) return;
  desc->attrs.insert_or_assign("origin_shape", AttrValue::Ints(tensor.origin_shape.dims()));
  if (!tensor.origin_layout.empty()) {
    desc->attrs.insert_or_assign("origin_format", AttrValue::String(tensor.origin_layout));
  }
}

Status CheckTensor(const SingleOperator& single, bool input, size_t index,
                   const OperatorTensor& tensor) {
  Status shape = tensor.type.shape.Check();
  if (shape.ok() && input && IsPrivate(tensor) && tensor.origin_shape.rank() == 0) {
    shape =
        Error(Code::kInvalidArgument,
              "{} has padding; aclSetTensorOriginShape says which shape it holds", tensor.layout);
  }
  return shape.WithContext(
      fmt::format("operator {}: {} {}", single.type, input ? "input" : "output", index));
}

// How many output ports the node has: those of the schema, or as many as a list takes.
int OutputPorts(const OpSchema& schema, const std::vector<OperatorTensor>& outputs) {
  const bool list = std::any_of(schema.outputs.begin(), schema.outputs.end(),
                                [](const auto& port) { return port.kind == PortKind::kDynamic; });
  return static_cast<int>(list ? outputs.size() : schema.outputs.size());
}

class Builder {
 public:
  Builder(const SingleOperator& single, const Operator& op) : single_(single), op_(op) {}

  Result<OperatorGraph> Build() {
    const OpSchema& schema = op_.schema;
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<PortPlace> places,
                             Places(single_.type, "inputs", schema.inputs, single_.inputs).Find());
    NPUMESH_RETURN_IF_ERROR(
        Places(single_.type, "outputs", schema.outputs, single_.outputs).Find().status());
    for (size_t i = 0; i < places.size(); ++i) {
      NPUMESH_RETURN_IF_ERROR(AddInput(i, PortName(schema.inputs, places[i])));
    }
    AddOperator();
    NPUMESH_RETURN_IF_ERROR(AddOutputs());
    NPUMESH_ASSIGN_OR_RETURN(made_.model, builder_.Build());
    DescribeNodes();
    return std::move(made_);
  }

 private:
  Status AddInput(size_t index, const std::string& port) {
    const OperatorTensor& tensor = single_.inputs[index];
    if (tensor.absent()) return Status();
    NPUMESH_RETURN_IF_ERROR(CheckTensor(single_, true, index, tensor));
    const std::string name = tensor.name.empty() ? port : tensor.name;
    const Value value =
        tensor.constant() ? builder_.Const(name, tensor.value) : builder_.Data(name, tensor.type);
    if (!tensor.constant()) made_.inputs.push_back(index);
    sources_.emplace_back(value, &tensor);
    ports_.emplace_back(port, value);
    return Status();
  }

  void AddOperator() {
    const int outputs = OutputPorts(op_.schema, single_.outputs);
    std::vector<GraphBuilder::Attr> attrs(single_.attrs.begin(), single_.attrs.end());
    operator_ = builder_.Op(single_.type, ports_, std::move(attrs), single_.type, outputs);
  }

  Status AddOutputs() {
    std::vector<Value> values;
    for (size_t i = 0; i < single_.outputs.size(); ++i) {
      const OperatorTensor& tensor = single_.outputs[i];
      if (tensor.absent()) continue;
      NPUMESH_RETURN_IF_ERROR(CheckTensor(single_, false, i, tensor));
      Value value = builder_.Port(operator_, static_cast<int>(i));
      if (IsPrivate(tensor)) value = AddConversion(value, tensor);
      made_.outputs.push_back(i);
      values.push_back(value);
    }
    builder_.Output(std::move(values));
    return Status();
  }

  Value AddConversion(Value plain, const OperatorTensor& tensor) {
    const std::string from = tensor.origin_layout.empty() ? "ND" : tensor.origin_layout;
    return builder_.Op("TransData", {{"src", plain}},
                       {{"src_format", AttrValue::String(from)},
                        {"dst_format", AttrValue::String(tensor.layout)}});
  }

  void DescribeNodes() {
    Graph& graph = made_.model.graph;
    Node& node = graph.node(operator_.node);
    for (size_t i = 0; i < sources_.size(); ++i) {
      const auto& [value, tensor] = sources_[i];
      Node& source = graph.node(value.node);
      for (TensorDesc& desc : source.input_descs) Describe(*tensor, &desc);
      Describe(*tensor, &source.output_descs[0]);
      Describe(*tensor, &node.input_descs[i]);
    }
    Node& sink = graph.node(graph.NetOutput());
    for (size_t i = 0; i < made_.outputs.size(); ++i) {
      const OperatorTensor& tensor = single_.outputs[made_.outputs[i]];
      Describe(tensor, &sink.input_descs[i]);
      TensorDesc& own = node.output_descs[made_.outputs[i]];
      own.dtype = tensor.type.dtype;
      if (IsPrivate(tensor)) continue;
      own.shape = tensor.type.shape;
      own.layout = tensor.layout;
    }
  }

  const SingleOperator& single_;
  const Operator& op_;
  GraphBuilder builder_{single_.type};
  OperatorGraph made_;
  std::vector<GraphBuilder::Input> ports_;
  std::vector<std::pair<Value, const OperatorTensor*>> sources_;  // of the fed ports
  Value operator_;
};

// ---- Comparison ----

// The operator of a graph of GraphOf, which stands before the conversions of its outputs. Null in a
// graph of another kind.
const Node* OperatorIn(const Graph& graph) {
  if (graph.NetOutput() == kNoNode) return nullptr;
  for (const Node& node : graph.nodes()) {
    if (!node.removed && !IsFurniture(node)) return &node;
  }
  return nullptr;
}

// Flags and types are written as numbers, too.
std::string TextOf(const AttrValue& value) {
  if (const auto* flag = value.get<bool>()) return *flag ? "1" : "0";
  if (const auto* type = value.get<DataTypeAttr>()) return std::to_string(type->number);
  const auto* list = value.get<ListAttr>();
  if (list == nullptr) return ValueText(value);
  std::vector<std::string> texts = list->s;
  for (const int64_t number : list->i) texts.push_back(std::to_string(number));
  for (const bool flag : list->b) texts.emplace_back(flag ? "1" : "0");
  for (const float number : list->f) texts.push_back(ValueText(AttrValue::Float(number)));
  for (const DataType type : list->dt) texts.push_back(std::to_string(static_cast<int>(type)));
  return fmt::format("[{}]", fmt::join(texts, ","));
}

bool SameAttrs(const Node& made, const Node& wanted, const OpSchema& schema) {
  return std::all_of(schema.attrs.begin(), schema.attrs.end(), [&](const AttrSpec& spec) {
    const AttrValue* a = made.FindAttr(spec.name);
    const AttrValue* b = wanted.FindAttr(spec.name);
    const AttrValue* fallback = spec.fallback ? &*spec.fallback : nullptr;
    a = a != nullptr ? a : fallback;
    b = b != nullptr ? b : fallback;
    if (a == nullptr || b == nullptr) return a == b;
    return TextOf(*a) == TextOf(*b);
  });
}

bool DimsFit(const std::optional<Shape>& made, const std::optional<Shape>& wanted) {
  if (!made || !wanted || !made->has_rank() || !wanted->has_rank()) return true;
  return std::equal(made->dims().begin(), made->dims().end(), wanted->dims().begin(),
                    wanted->dims().end(),
                    [](int64_t a, int64_t b) { return a == b || a < 0 || b < 0; });
}

// ND stands for every plain layout.
bool LayoutsFit(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const bool one_is_any = a == "ND" || b == "ND";
  return one_is_any && !IsPrivateLayout(LayoutNumber(a)) && !IsPrivateLayout(LayoutNumber(b));
}

bool DescsFit(const TensorDesc& made, const TensorDesc& wanted) {
  return made.dtype == wanted.dtype && LayoutsFit(made.layout, wanted.layout) &&
         DimsFit(made.shape, wanted.shape);
}

bool SameConstant(const Model& made, const Node& a, const Model& wanted, const Node& b) {
  const Result<Tensor> x = LoadWeight(a, made.path), y = LoadWeight(b, wanted.path);
  return x.ok() && y.ok() && x->type() == y->type() &&
         std::memcmp(x->data(), y->data(), x->bytes()) == 0;
}

bool SourcesFit(const Model& made, const Model& wanted, const Node& a, const Node& b) {
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (a.input_descs[i].name != b.input_descs[i].name) return false;
    const Node& x = made.graph.node(a.inputs[i]->node);
    const Node& y = wanted.graph.node(b.inputs[i]->node);
    if (IsWeightNode(x) != IsWeightNode(y)) return false;
    const bool fits = IsWeightNode(x) ? SameConstant(made, x, wanted, y)
                                      : DescsFit(x.output_descs[0], y.output_descs[0]);
    if (!fits) return false;
  }
  return true;
}

}  // namespace

Result<OperatorGraph> GraphOf(const SingleOperator& single, const OpRegistry& registry) {
  NPUMESH_ASSIGN_OR_RETURN(const Operator* const op, FindOperator(single.type, registry));
  return Builder(single, *op).Build();
}

bool Serves(const Model& made, const Model& wanted, const OpRegistry& registry) {
  const Node *a = OperatorIn(made.graph), *b = OperatorIn(wanted.graph);
  if (a == nullptr || b == nullptr || a->type != b->type) return false;
  const Operator* const op = registry.Find(a->type);
  if (op == nullptr || a->inputs.size() != b->inputs.size()) return false;
  if (!SourcesFit(made, wanted, *a, *b) || !SameAttrs(*a, *b, op->schema)) return false;
  const auto& outputs = made.graph.node(made.graph.NetOutput()).input_descs;
  const auto& expected = wanted.graph.node(wanted.graph.NetOutput()).input_descs;
  return std::equal(outputs.begin(), outputs.end(), expected.begin(), expected.end(), DescsFit);
}

}  // namespace npumesh
