#include "graph/onnx/reader.h"

#include <set>

#include "graph/io/wire.h"
#include "graph/onnx/tensor_reader.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

// Versions of the file format (IR_VERSION) that are known. 12 and 13 added element types, which are
// refused where they stand.
constexpr int64_t kFirstFormat = 3;
constexpr int64_t kLastFormat = 13;

OnnxType TypeFrom(const onnx::TypeProto& proto);

std::shared_ptr<const OnnxType> ElementFrom(const onnx::TypeProto& proto) {
  return std::make_shared<OnnxType>(TypeFrom(proto));
}

OnnxType TensorTypeFrom(const onnx::TypeProto::Tensor& proto) {
  OnnxType type;
  type.kind = OnnxKind::kTensor;
  type.tensor = {DataTypeFromOnnx(proto.elem_type()), Shape::UnknownRank()};
  if (!proto.has_shape()) return type;
  type.tensor.shape = Shape();
  for (const auto& dim : proto.shape().dim()) {
    const bool known = dim.has_dim_value() && dim.dim_value() >= 0;
    type.tensor.shape.mutable_dims().push_back(known ? dim.dim_value() : kUnknownDim);
    type.dim_names.push_back(dim.dim_param());
  }
  return type;
}

// ParseWire bounds how deep types nest.
OnnxType TypeFrom(const onnx::TypeProto& proto) {
  OnnxType type;
  if (proto.has_tensor_type()) return TensorTypeFrom(proto.tensor_type());
  if (proto.has_sequence_type()) {
    type.kind = OnnxKind::kSequence;
    type.element = ElementFrom(proto.sequence_type().elem_type());
  } else if (proto.has_optional_type()) {
    type.kind = OnnxKind::kOptional;
    type.element = ElementFrom(proto.optional_type().elem_type());
  }
  return type;
}

class ModelReader {
 public:
  explicit ModelReader(std::string path) : path_(std::move(path)) {}

  // Takes the bytes of tensors out of the message.
  Result<OnnxModel> Read(onnx::ModelProto& proto) {
    OnnxModel model;
    model.path = path_;
    model.ir_version = proto.ir_version();
    model.producer = proto.producer_name();
    if (model.ir_version < kFirstFormat || model.ir_version > kLastFormat) {
      return Error(Code::kUnsupported, "has ir_version {}; npumesh reads {} to {}",
                   model.ir_version, kFirstFormat, kLastFormat);
    }
    if (!proto.has_graph()) return Error(Code::kCorrupt, "has no graph");
    NPUMESH_ASSIGN_OR_RETURN(model.opsets, OpsetsFrom(proto.opset_import()));
    if (model.opsets.empty()) return Error(Code::kCorrupt, "has no opset_import");
    NPUMESH_ASSIGN_OR_RETURN(model.graph, GraphFrom(*proto.mutable_graph()));
    for (auto& function : *proto.mutable_functions()) {
      NPUMESH_ASSIGN_OR_RETURN(OnnxFunction read, FunctionFrom(function));
      model.functions.push_back(std::move(read));
    }
    return model;
  }

 private:
  template <typename Imports>
  static Result<std::map<std::string, int64_t>> OpsetsFrom(const Imports& imports) {
    std::map<std::string, int64_t> opsets;
    for (const auto& import : imports) {
      const auto [entry, added] = opsets.emplace(DomainFrom(import.domain()), import.version());
      if (added || entry->second == import.version()) continue;
      return Error(Code::kCorrupt,
                   "imports two versions of the operator set \"{}\", {} and {}; expected one",
                   Quotable(entry->first), entry->second, import.version());
    }
    return opsets;
  }

  static std::string DomainFrom(const std::string& domain) {
    return domain == "ai.onnx" ? "" : domain;
  }

  Result<OnnxGraph> GraphFrom(onnx::GraphProto& proto) {
    OnnxGraph graph;
    graph.name = proto.name();
    if (proto.sparse_initializer_size() > 0) {
      return Error(Code::kUnsupported, "graph \"{}\" has sparse initialisers",
                   Quotable(graph.name));
    }
    for (auto& tensor : *proto.mutable_initializer()) {
      Result<Tensor> value = TakeTensor(tensor, path_);
      if (!value.ok()) {
        return value.status().WithContext(
            fmt::format("initialiser \"{}\"", Quotable(tensor.name())));
      }
      graph.initialisers[tensor.name()] = *std::move(value);
    }
    for (const auto& info : proto.input()) graph.inputs.push_back(InfoFrom(info));
    for (const auto& info : proto.output()) graph.outputs.push_back(InfoFrom(info));
    for (const auto& info : proto.value_info()) graph.values.push_back(InfoFrom(info));
    NPUMESH_ASSIGN_OR_RETURN(graph.nodes, NodesFrom(*proto.mutable_node()));
    return graph;
  }

  static OnnxValueInfo InfoFrom(const onnx::ValueInfoProto& proto) {
    return {proto.name(), TypeFrom(proto.type())};
  }

  template <typename Nodes>
  Result<std::vector<OnnxNode>> NodesFrom(Nodes& protos) {
    std::vector<OnnxNode> nodes;
    for (auto& proto : protos) {
      NPUMESH_ASSIGN_OR_RETURN(OnnxNode node, NodeFrom(proto));
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

  Result<OnnxNode> NodeFrom(onnx::NodeProto& proto) {
    OnnxNode node;
    node.name = proto.name();
    node.op = proto.op_type();
    node.domain = DomainFrom(proto.domain());
    node.inputs.assign(proto.input().begin(), proto.input().end());
    node.outputs.assign(proto.output().begin(), proto.output().end());
    for (auto& attribute : *proto.mutable_attribute()) {
      Result<OnnxAttribute> read = AttributeFrom(attribute);
      if (!read.ok()) {
        return read.status().WithContext(
            fmt::format("{}: attribute \"{}\"", node.Who(), Quotable(attribute.name())));
      }
      node.attributes.push_back(*std::move(read));
    }
    return node;
  }

  Result<OnnxAttribute> AttributeFrom(onnx::AttributeProto& proto) {
    using Kind = OnnxAttribute::Kind;
    OnnxAttribute attribute;
    attribute.name = proto.name();
    attribute.reference = proto.ref_attr_name();
    switch (proto.type()) {
      case onnx::AttributeProto::FLOAT:
        attribute.kind = Kind::kFloat;
        attribute.f = proto.f();
        break;
      case onnx::AttributeProto::INT:
        attribute.kind = Kind::kInt;
        attribute.i = proto.i();
        break;
      case onnx::AttributeProto::STRING:
        attribute.kind = Kind::kString;
        attribute.s = proto.s();
        break;
      case onnx::AttributeProto::FLOATS:
        attribute.kind = Kind::kFloats;
        attribute.floats.assign(proto.floats().begin(), proto.floats().end());
        break;
      case onnx::AttributeProto::INTS:
        attribute.kind = Kind::kInts;
        attribute.ints.assign(proto.ints().begin(), proto.ints().end());
        break;
      case onnx::AttributeProto::STRINGS:
        attribute.kind = Kind::kStrings;
        attribute.strings.assign(proto.strings().begin(), proto.strings().end());
        break;
      case onnx::AttributeProto::TENSOR: {
        attribute.kind = Kind::kTensor;
        if (!attribute.reference.empty()) break;
        NPUMESH_ASSIGN_OR_RETURN(attribute.tensor, TakeTensor(*proto.mutable_t(), path_));
        break;
      }
      case onnx::AttributeProto::GRAPH: {
        attribute.kind = Kind::kGraph;
        NPUMESH_ASSIGN_OR_RETURN(OnnxGraph graph, GraphFrom(*proto.mutable_g()));
        attribute.graph = std::make_shared<OnnxGraph>(std::move(graph));
        break;
      }
      case onnx::AttributeProto::TYPE_PROTO:
        attribute.kind = Kind::kType;
        attribute.type = TypeFrom(proto.tp());
        break;
      default:
        break;
    }
    return attribute;
  }

  Result<OnnxFunction> FunctionFrom(onnx::FunctionProto& proto) {
    OnnxFunction function;
    function.name = proto.name();
    function.domain = DomainFrom(proto.domain());
    function.inputs.assign(proto.input().begin(), proto.input().end());
    function.outputs.assign(proto.output().begin(), proto.output().end());
    function.attributes.assign(proto.attribute().begin(), proto.attribute().end());
    NPUMESH_ASSIGN_OR_RETURN(function.opsets, OpsetsFrom(proto.opset_import()));
    NPUMESH_ASSIGN_OR_RETURN(function.nodes, NodesFrom(*proto.mutable_node()));
    return function;
  }

  std::string path_;
};

// A protobuf varint at `at`, which moves past it; false: the bytes end.
bool TakeVarint(std::string_view bytes, size_t& at, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Skips what follows a tag of this wire type; false: it ends too early, or is no such type.
bool SkipField(std::string_view bytes, size_t& at, uint64_t wire_type) {
  constexpr uint64_t kVarint = 0, kEightBytes = 1, kText = 2, kFourBytes = 5;
  uint64_t size = 0;
  if (wire_type == kVarint) return TakeVarint(bytes, at, size);
  if (wire_type == kText && !TakeVarint(bytes, at, size)) return false;
  if (wire_type == kEightBytes) size = 8;
  if (wire_type == kFourBytes) size = 4;
  if (wire_type > kFourBytes || wire_type == 3 || wire_type == 4) return false;
  if (size > bytes.size() - at) return false;
  at += size;
  return true;
}

}  // namespace

// ModelProto begins with the number ir_version (field 1), where a ModelDef has the text name.
bool LooksLikeOnnx(std::string_view bytes) {
  constexpr uint64_t kIrVersion = 1 << 3, kGraph = 7 << 3 | 2, kOpsetImport = 8 << 3 | 2;
  bool has_version = false, has_body = false;
  size_t at = 0;
  while (at < bytes.size() && !(has_version && has_body)) {
    uint64_t tag = 0;
    if (!TakeVarint(bytes, at, tag)) return false;
    has_version |= tag == kIrVersion;
    has_body |= tag == kGraph || tag == kOpsetImport;
    if (has_version && has_body) return true;
    if (!SkipField(bytes, at, tag & 7)) return false;
  }
  return has_version && has_body;
}

Result<OnnxModel> ReadOnnx(std::string_view bytes, const std::string& path,
                           const std::function<void(std::string_view piece)>& done) {
  onnx::ModelProto proto;
  Status parsed = ParseWire(bytes, &proto, done);
  if (!parsed.ok()) return parsed.WithContext(path);
  Result<OnnxModel> model = ModelReader(path).Read(proto);
  if (!model.ok()) return model.status().WithContext(path);
  return model;
}

Result<Tensor> ReadOnnxTensor(std::string_view bytes) {
  onnx::TensorProto proto;
  NPUMESH_RETURN_IF_ERROR(ParseWire(bytes, &proto));
  return TakeTensor(proto, "");
}

}  // namespace npumesh
