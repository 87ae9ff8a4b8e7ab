#include "graph/passes/rewrite/private_formats.h"

#include <map>
#include <set>

#include "graph/io/weights.h"
#include "graph/ops/toolbox/copy/blocked_layout.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/analysis/node_error.h"

namespace npumesh {
namespace {

// What a descriptor says about bytes in a private format.
struct PrivateForm {
  LayoutSpec layout;
  std::string plain_layout;  // of the origin shape
  Shape plain_shape;
  Shape storage_shape;
};

std::string PlainLayoutOf(const TensorDesc& desc, Layout layout) {
  const auto found = desc.attrs.find("origin_format");
  if (found != desc.attrs.end()) {
    const auto* name = found->second.get<std::string>();
    const auto spec = name != nullptr ? LayoutSpecOf(*name) : std::nullopt;
    if (spec && !spec->is_private()) return *name;
  }
  return layout == Layout::kFractalNz ? "ND" : "NCHW";
}

// nullopt: the descriptor is plain, or does not say what the bytes are without padding.
std::optional<PrivateForm> PrivateFormOf(const TensorDesc& desc, const Shape& shape) {
  const std::optional<LayoutSpec> layout = LayoutSpecOf(desc.layout);
  const auto origin = desc.attrs.find("origin_shape");
  if (!layout || !layout->is_private() || origin == desc.attrs.end()) return std::nullopt;
  const auto* dims = origin->second.get<ListAttr>();
  if (dims == nullptr || dims->i.empty()) return std::nullopt;
  return PrivateForm{*layout, PlainLayoutOf(desc, layout->layout), Shape(dims->i), shape};
}

Result<BlockedTensor> BlockedOf(const PrivateForm& form, DataType dtype) {
  NPUMESH_ASSIGN_OR_RETURN(BlockedTensor tensor,
                           BlockedTensor::Create(*LayoutSpecOf(form.plain_layout), form.plain_shape,
                                                 form.layout, dtype, 1));
  if (tensor.storage_shape() == form.storage_shape) return tensor;
  return Error(Code::kCorrupt, "shape {} in its format, expected {} for the origin_shape {}",
               form.storage_shape.ToString(), tensor.storage_shape().ToString(),
               form.plain_shape.ToString());
}

bool HasWholeBytes(DataType dtype) {
  return BitsOf(dtype) >= 8;
}

void SetPlain(TensorDesc& desc, std::string layout, const Shape& shape) {
  desc.layout = std::move(layout);
  desc.shape = shape;
  for (const char* attr : {"origin_shape", "origin_shape_initialized", "origin_format",
                           "origin_format_is_set", "origin_format_for_int", "format_for_int"}) {
    desc.attrs.erase(attr);
  }
}

bool IsPrivate(const TensorDesc& desc) {
  const std::optional<LayoutSpec> layout = LayoutSpecOf(desc.layout);
  return layout && layout->is_private();
}

// A caller brings the storage shape only where the descriptor has one: an empty one stands for the
// plain value of `origin_shape`.
bool HasDims(const TensorDesc& desc) {
  return desc.shape && desc.shape->has_rank() && desc.shape->rank() > 0;
}

// Lets a descriptor of a private format speak of the plain value.
void DeclarePlain(TensorDesc& desc) {
  if (!IsPrivate(desc)) return;
  const auto origin = desc.attrs.find("origin_shape");
  const auto* dims = origin == desc.attrs.end() ? nullptr : origin->second.get<ListAttr>();
  const bool known = dims != nullptr && !dims->i.empty();
  SetPlain(desc, PlainLayoutOf(desc, LayoutSpecOf(desc.layout)->layout),
           known ? Shape(dims->i) : Shape::UnknownRank());
}

void SetPrivate(TensorDesc& desc, const std::string& layout, const PrivateForm& form) {
  desc.layout = layout;
  desc.shape = form.storage_shape;
  desc.attrs.insert_or_assign("origin_shape", AttrValue::Ints(form.plain_shape.dims()));
  desc.attrs.insert_or_assign("origin_shape_initialized", AttrValue::Bool(true));
  desc.attrs.insert_or_assign("origin_format", AttrValue::String(form.plain_layout));
  desc.attrs.insert_or_assign("origin_format_is_set", AttrValue::Bool(true));
}

// `tensor` with the bytes of the other layout.
Tensor Converted(const Tensor& tensor, const BlockedTensor& blocked, Direction direction) {
  const Shape& shape =
      direction == Direction::kToPlain ? blocked.plain_shape() : blocked.storage_shape();
  Tensor result = Tensor::Allocate({tensor.dtype(), shape});
  ConvertLayout(blocked, direction, static_cast<size_t>(BitsOf(tensor.dtype())) / 8, tensor.data(),
                result.mutable_data());
  return result;
}

// Gives a constant node the value that `desc` describes.
void SetValue(Node& node, const Tensor& tensor, const TensorDesc& desc) {
  TensorAttr value;
  value.desc = std::make_shared<TensorDesc>(desc);
  value.data = std::make_shared<const std::string>(reinterpret_cast<const char*>(tensor.data()),
                                                   static_cast<size_t>(tensor.bytes()));
  node.attrs.insert_or_assign("value", AttrValue::Variant(std::move(value)));
}

class Plainer {
 public:
  // The inputs and outputs of a main graph are a caller's, those of a subgraph are plain.
  Plainer(Graph& graph, bool main) : graph_(graph), main_(main) {}

  Status Run() {
    NPUMESH_RETURN_IF_ERROR(MakeConstsPlain());
    const size_t before = graph_.nodes().size();  // nodes are added at the end
    for (size_t id = 0; id < before; ++id) DropConversion(static_cast<NodeId>(id));
    for (size_t id = 0; id < before; ++id) {
      NPUMESH_RETURN_IF_ERROR(ReadPlain(static_cast<NodeId>(id)));
    }
    return Status();
  }

 private:
  static bool IsConversion(const Node& node) { return !node.removed && node.type == "TransData"; }

  static std::optional<LayoutSpec> Side(const Node& conversion, const char* attr) {
    return LayoutSpecOf(conversion.StringAttr(attr, ""));
  }

  static bool MakesPrivate(const Node& node) {
    if (!IsConversion(node)) return false;
    const auto from = Side(node, "src_format");
    const auto to = Side(node, "dst_format");
    return from && to && !from->is_private() && to->is_private();
  }

  Status MakeConstsPlain() {
    for (size_t id = 0; id < graph_.nodes().size(); ++id) {
      Node& node = graph_.node(static_cast<NodeId>(id));
      const AttrValue* attr =
          node.removed || !IsWeightNode(node) ? nullptr : node.FindAttr("value");
      const auto* value = attr == nullptr ? nullptr : attr->get<TensorAttr>();
      if (value == nullptr) continue;
      const auto form = PrivateFormOf(*value->desc, value->desc->shape.value_or(Shape()));
      if (!form || !HasWholeBytes(value->desc->dtype)) continue;
      if (const Status status = MakePlain(node, *form); !status.ok()) return AtNode(node, status);
    }
    return Status();
  }

  Status MakePlain(Node& node, const PrivateForm& form) {
    NPUMESH_ASSIGN_OR_RETURN(const Tensor stored, LoadWeight(node, ""));
    NPUMESH_ASSIGN_OR_RETURN(const BlockedTensor blocked, BlockedOf(form, stored.dtype()));
    TensorDesc desc = *node.FindAttr("value")->get<TensorAttr>()->desc;
    SetPlain(desc, form.plain_layout, form.plain_shape);
    SetValue(node, Converted(stored, blocked, Direction::kToPlain), desc);
    for (TensorDesc& output : node.output_descs) {
      SetPlain(output, form.plain_layout, form.plain_shape);
    }
    made_plain_.insert(node.id);
    return Status();
  }

  // The form of a value that the caller brings in a private format.
  std::optional<PrivateForm> BroughtPrivate(Value value) const {
    const Node& node = graph_.node(value.node);
    if (!main_ || !IsData(node)) return std::nullopt;
    const TensorDesc& desc = node.output_descs[static_cast<size_t>(value.port)];
    if (!HasDims(desc)) return std::nullopt;
    std::optional<PrivateForm> form = PrivateFormOf(desc, *desc.shape);
    if (form && !BlockedOf(*form, desc.dtype).ok()) return std::nullopt;  // the shape is plain
    return form;
  }

  // True when the graph says that the value is private, but its bytes are plain here.
  bool PlainInSpiteOfItsName(Value value) const {
    const Node& node = graph_.node(value.node);
    const TensorDesc& desc = node.output_descs[static_cast<size_t>(value.port)];
    if (IsWeightNode(node)) return made_plain_.contains(node.id);
    if (IsConversion(node) || !IsPrivate(desc)) return false;
    return !IsInputNode(node) || !main_ || !HasDims(desc);
  }

  // A TransData to plain falls out when its source is plain already.
  void DropConversion(NodeId id) {
    const Node& node = graph_.node(id);
    if (!IsConversion(node) || node.inputs.empty() || !node.inputs[0]) return;
    const auto from = Side(node, "src_format");
    const auto to = Side(node, "dst_format");
    if (!from || !to || !from->is_private() || to->is_private()) return;
    if (PlainInSpiteOfItsName(*node.inputs[0])) graph_.ReplaceUses({id, 0}, *node.inputs[0]);
  }

  Status ReadPlain(NodeId id) {
    if (graph_.node(id).removed || IsConversion(graph_.node(id))) return Status();
    const bool outside = main_ && IsNetOutput(graph_.node(id));
    for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
      const std::optional<Value> input = graph_.node(id).inputs[i];
      if (!input || (outside && IsPrivateOutside(*input))) continue;
      NPUMESH_ASSIGN_OR_RETURN(const Value plain, PlainOf(*input));
      Node& node = graph_.node(id);
      node.inputs[i] = plain;
      DeclarePlain(node.input_descs[i]);
    }
    if (IsInputNode(graph_.node(id))) return Status();
    for (TensorDesc& desc : graph_.node(id).output_descs) DeclarePlain(desc);
    return Status();
  }

  bool IsPrivateOutside(Value value) const {
    return MakesPrivate(graph_.node(value.node)) || BroughtPrivate(value).has_value();
  }

  Result<Value> PlainOf(Value value) {
    const Node& producer = graph_.node(value.node);
    if (MakesPrivate(producer) && producer.inputs[0]) return *producer.inputs[0];
    const std::optional<PrivateForm> form = BroughtPrivate(value);
    if (!form) return value;
    const auto known = converted_.find(value);
    if (known != converted_.end()) return known->second;
    NPUMESH_ASSIGN_OR_RETURN(const Value plain, AddConversion(value, *form));
    return converted_[value] = plain;
  }

  Result<Value> AddConversion(Value value, const PrivateForm& form) {
    const Node& producer = graph_.node(value.node);
    Node node;
    node.type = "TransData";
    node.name = "trans_TransData_" + std::to_string(converted_.size());
    while (graph_.Find(node.name) != kNoNode) node.name += "_";
    node.inputs = {value};
    TensorDesc desc = producer.output_descs[static_cast<size_t>(value.port)];
    node.attrs.emplace("src_format", AttrValue::String(desc.layout));
    node.attrs.emplace("dst_format", AttrValue::String(form.plain_layout));
    desc.name = "src";
    node.input_descs = {desc};
    SetPlain(desc, form.plain_layout, form.plain_shape);
    desc.name = "dst";
    node.output_descs = {desc};
    NPUMESH_ASSIGN_OR_RETURN(const NodeId id, graph_.Add(std::move(node)));
    return Value{id, 0};
  }

  Graph& graph_;
  const bool main_;
  std::set<NodeId> made_plain_;       // Const nodes
  std::map<Value, Value> converted_;  // by what a caller brings in a private format
};

class Privater {
 public:
  Privater(Graph& graph, const OpRegistry& registry, const std::string& model_path)
      : graph_(graph), registry_(registry), path_(model_path) {}

  Result<int> Run() {
    for (size_t id = 0; id < graph_.nodes().size(); ++id) {
      Node& node = graph_.node(static_cast<NodeId>(id));
      const Operator* const op = node.removed ? nullptr : registry_.Find(node.type);
      if (op == nullptr || !op->weight) continue;
      const int input = node.FindInput(op->weight->port);
      if (input < 0 || !node.inputs[static_cast<size_t>(input)]) continue;
      Node& weight = graph_.node(node.inputs[static_cast<size_t>(input)]->node);
      if (!IsWeightNode(weight)) continue;
      const Status status = Convert(weight, *op->weight, node);
      if (!status.ok()) return AtNode(node, status);
      const auto form = forms_.find(weight.id);
      if (form == forms_.end()) continue;
      SetPrivate(node.input_descs[static_cast<size_t>(input)], std::string(op->weight->layout),
                 form->second);
    }
    return static_cast<int>(forms_.size());
  }

 private:
  // Leaves a weight alone that cannot or need not change.
  Status Convert(Node& weight, const WeightTrait& port, const Node& reader) {
    if (forms_.contains(weight.id) || IsPrivate(weight.output_descs[0])) return Status();
    NPUMESH_ASSIGN_OR_RETURN(const Tensor plain, LoadWeight(weight, path_));
    const LayoutSpec layout = *LayoutSpecOf(port.layout);
    const bool filter = layout.layout == Layout::kFractalZ;
    if (plain.shape().rank() < 2 || !HasWholeBytes(plain.dtype()) || plain.bytes() == 0) {
      return Status();
    }
    if (filter && (plain.dtype() != DataType::kFloat16 || reader.IntAttr("groups", 1) != 1)) {
      return Status();
    }
    NPUMESH_ASSIGN_OR_RETURN(const BlockedTensor blocked,
                             BlockedTensor::Create(*LayoutSpecOf(port.plain_layout), plain.shape(),
                                                   layout, plain.dtype(), 1));
    const PrivateForm form = {layout, std::string(port.plain_layout), plain.shape(),
                              blocked.storage_shape()};
    TensorDesc desc;
    desc.dtype = plain.dtype();
    SetPrivate(desc, std::string(port.layout), form);
    SetValue(weight, Converted(plain, blocked, Direction::kToPrivate), desc);
    weight.type = "Const";
    for (const char* attr : {"file_path", "location", "offset", "length", "shape", "dtype"}) {
      weight.attrs.erase(attr);
    }
    for (TensorDesc& output : weight.output_descs) {
      output.dtype = plain.dtype();
      SetPrivate(output, std::string(port.layout), form);
    }
    forms_[weight.id] = form;
    return Status();
  }

  Graph& graph_;
  const OpRegistry& registry_;
  const std::string& path_;
  std::map<NodeId, PrivateForm> forms_;  // of the weights that changed
};

}  // namespace

Status MakeValuesPlain(Model& model) {
  NPUMESH_RETURN_IF_ERROR(Plainer(model.graph, true).Run());
  for (Graph& graph : model.subgraphs) NPUMESH_RETURN_IF_ERROR(Plainer(graph, false).Run());
  return Status();
}

Result<int> UseInternalFormatWeight(Model& model, const OpRegistry& registry) {
  NPUMESH_ASSIGN_OR_RETURN(int changed, Privater(model.graph, registry, model.path).Run());
  for (Graph& graph : model.subgraphs) {
    NPUMESH_ASSIGN_OR_RETURN(const int more, Privater(graph, registry, model.path).Run());
    changed += more;
  }
  return changed;
}

}  // namespace npumesh
