// The functions of npumesh.h about element types and operators.
#include <list>
#include <mutex>
#include <set>
#include <string>

#include "graph/c_interface/call.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/signature.h"
#include "runtime/card/card.h"

namespace npumesh {
namespace {

// Texts that stay until the process ends. Thread-safety: any thread.
const char* Lasting(std::string_view text) {
  static std::mutex mutex;
  static auto* const texts = new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  auto found = texts->find(text);
  if (found == texts->end()) found = texts->emplace(text).first;
  return found->c_str();
}

Result<const OpSchema*> SchemaOf(const char* type) {
  NPUMESH_RETURN_IF_ERROR(CheckPointer(type, "type"));
  if (const Operator* const op = BuiltinOps().Find(type)) return &op->schema;
  const std::vector<std::string> nearest = BuiltinOps().Nearest(type);
  return Error(Code::kNotFound, "npumesh has no operator \"{}\"{}", type,
               nearest.empty() ? "" : fmt::format("; near: {}", fmt::join(nearest, ", ")));
}

const char* KindOf(PortKind kind) {
  switch (kind) {
    case PortKind::kRequired:
      return "required";
    case PortKind::kOptional:
      return "optional";
    case PortKind::kDynamic:
      return "dynamic";
  }
  return "";
}

const char* ListKindOf(const ListAttr& list) {
  switch (list.kind) {
    case ListKind::kString:
      return "VT_LIST_STRING";
    case ListKind::kFloat:
      return "VT_LIST_FLOAT";
    case ListKind::kBool:
      return "VT_LIST_BOOL";
    case ListKind::kDataType:
      return "VT_LIST_DATA_TYPE";
    default:
      return "VT_LIST_INT";
  }
}

const char* KindOf(const AttrValue& pattern) {
  if (pattern.get<int64_t>() != nullptr) return "VT_INT";
  if (pattern.get<float>() != nullptr) return "VT_FLOAT";
  if (pattern.get<bool>() != nullptr) return "VT_BOOL";
  if (pattern.get<std::string>() != nullptr) return "VT_STRING";
  if (pattern.get<DataTypeAttr>() != nullptr) return "VT_DATA_TYPE";
  if (pattern.get<TensorAttr>() != nullptr) return "VT_TENSOR";
  const auto* const list = pattern.get<ListAttr>();
  return list == nullptr ? "VT_ANY" : ListKindOf(*list);
}

Status CheckPosition(size_t position, size_t count, std::string_view what) {
  if (position < count) return Status();
  return Error(Code::kInvalidArgument, "it has {} {}, asked for position {}", count, what,
               position);
}

Status DescribePort(const std::vector<PortSpec>& ports, size_t position, std::string_view what,
                    npumesh_op_field& field) {
  NPUMESH_RETURN_IF_ERROR(CheckPosition(position, ports.size(), what));
  field = {Lasting(ports[position].name), KindOf(ports[position].kind), nullptr};
  return Status();
}

Status DescribeAttr(const std::vector<AttrSpec>& attrs, size_t position, npumesh_op_field& field) {
  NPUMESH_RETURN_IF_ERROR(CheckPosition(position, attrs.size(), "attributes"));
  const AttrSpec& attr = attrs[position];
  field = {Lasting(attr.name), KindOf(attr.pattern),
           attr.fallback ? Lasting(ValueText(*attr.fallback)) : nullptr};
  return Status();
}

Status DescribeField(const OpSchema& schema, npumesh_op_part part, size_t position,
                     npumesh_op_field& field) {
  switch (part) {
    case NPUMESH_OP_INPUT:
      return DescribePort(schema.inputs, position, "inputs", field);
    case NPUMESH_OP_OUTPUT:
      return DescribePort(schema.outputs, position, "outputs", field);
    case NPUMESH_OP_ATTR:
      return DescribeAttr(schema.attrs, position, field);
  }
  return Error(Code::kInvalidArgument, "part {} is not known", static_cast<int>(part));
}

}  // namespace
}  // namespace npumesh

extern "C" const char* npumesh_dtype_name(int32_t dtype) {
  const auto known = npumesh::DataTypeFromRuntime(dtype);
  return known ? npumesh::Name(*known).data() : "unknown";  // its texts end with a null
}

extern "C" int32_t npumesh_dtype_bits(int32_t dtype) {
  const auto known = npumesh::DataTypeFromRuntime(dtype);
  return known ? npumesh::BitsOf(*known) : 0;
}

extern "C" const char* npumesh_op_type(size_t position) {
  static const auto* const types = new std::vector<std::string_view>(npumesh::BuiltinOps().Types());
  return position < types->size() ? npumesh::Lasting((*types)[position]) : nullptr;
}

extern "C" npumesh_code npumesh_get_op(const char* type, npumesh_op* op) {
  return npumesh::Call(__func__, [&]() -> npumesh::Status {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(op, "op"));
    NPUMESH_ASSIGN_OR_RETURN(const npumesh::OpSchema* const schema, npumesh::SchemaOf(type));
    *op = {schema->inputs.size(), schema->outputs.size(), schema->attrs.size()};
    return npumesh::Status();
  });
}

extern "C" npumesh_code npumesh_get_op_field(const char* type, npumesh_op_part part,
                                             size_t position, npumesh_op_field* field) {
  return npumesh::Call(__func__, [&]() -> npumesh::Status {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(field, "field"));
    NPUMESH_ASSIGN_OR_RETURN(const npumesh::OpSchema* const schema, npumesh::SchemaOf(type));
    return npumesh::DescribeField(*schema, part, position, *field).WithContext(type);
  });
}

extern "C" npumesh_code npumesh_get_card_number(const char* fact, int64_t* number) {
  return npumesh::Call(__func__, [&]() -> npumesh::Status {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(fact, "fact"));
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(number, "number"));
    NPUMESH_ASSIGN_OR_RETURN(const npumesh::Card card, npumesh::Card::FromProcess());
    *number = 0;
    if (!card) return npumesh::Status();
    const std::optional<int64_t> known = card.chip->Number(fact);
    if (!known) {
      return npumesh::Error(npumesh::Code::kNotFound, "no number \"{}\" is documented of {}", fact,
                            card.chip->name);
    }
    *number = *known;
    return npumesh::Status();
  });
}
