#include "graph/ops/operator.h"

#include <cassert>

namespace npumesh {
namespace {

// "x" followed by digits only, for element ports of the dynamic input "x". -1: something else.
int ElementOf(std::string_view port, std::string_view dynamic) {
  if (port.size() <= dynamic.size() || port.substr(0, dynamic.size()) != dynamic) return -1;
  int element = 0;
  for (const char c : port.substr(dynamic.size())) {
    if (c < '0' || c > '9' || element > 1'000'000) return -1;
    element = element * 10 + (c - '0');
  }
  return element;
}

// Input index of each element of dynamic port `name`, in element order.
std::vector<int> DynamicInputs(const Node& node, std::string_view name) {
  std::vector<int> indexes;
  for (size_t i = 0; i < node.input_descs.size(); ++i) {
    const int element = ElementOf(node.input_descs[i].name, name);
    if (element < 0) continue;
    if (indexes.size() <= static_cast<size_t>(element) &&
        static_cast<size_t>(element) < node.input_descs.size()) {
      indexes.resize(static_cast<size_t>(element) + 1, -1);
    }
    if (static_cast<size_t>(element) < indexes.size()) {
      indexes[static_cast<size_t>(element)] = static_cast<int>(i);
    }
  }
  return indexes;
}

// True when the node carries port names at all; hand-made files may not.
bool HasPortNames(const Node& node) {
  for (const TensorDesc& desc : node.input_descs) {
    if (!desc.name.empty()) return true;
  }
  return node.input_descs.empty();
}

std::string WhoIs(const Node& node) {
  return fmt::format("node \"{}\" ({})", node.name, node.type);
}

bool Fits(const AttrValue& value, const AttrValue& fallback) {
  const auto numeric = [](const AttrValue& v) {
    return v.get<int64_t>() || v.get<bool>() || v.get<DataTypeAttr>();
  };
  if (fallback.variant().index() == value.variant().index()) return true;
  if (numeric(value) && (numeric(fallback) || fallback.get<float>())) return true;
  return value.get<int64_t>() && fallback.get<ListAttr>();
}

Status CheckAttrs(const Node& node, const OpSchema& schema) {
  for (const AttrSpec& spec : schema.attrs) {
    const AttrValue* value = node.FindAttr(spec.name);
    const bool unset = value == nullptr || value->get<OpaqueAttr>() != nullptr;
    if (unset && !spec.fallback) {
      return Error(Code::kCorrupt, "{}: required attribute \"{}\" is missing", WhoIs(node),
                   spec.name);
    }
    if (!unset && spec.fallback && !Fits(*value, *spec.fallback)) {
      return Error(Code::kCorrupt, "{}: attribute \"{}\" is of kind {}, expected {}", WhoIs(node),
                   spec.name, value->kind(), spec.fallback->kind());
    }
  }
  return Status();
}

}  // namespace

Result<OpContext> OpContext::Bind(const Node& node, const OpSchema& schema) {
  OpContext context;
  context.node_ = &node;
  context.schema_ = &schema;
  const bool named = HasPortNames(node);
  int next_position = 0;  // for nodes without port names
  for (const PortSpec& port : schema.inputs) {
    std::vector<int> indexes;
    if (!named) {
      const int left = static_cast<int>(node.inputs.size()) - next_position;
      const int take = port.kind == PortKind::kDynamic ? left : std::min(left, 1);
      for (int i = 0; i < take; ++i) indexes.push_back(next_position++);
    } else if (port.kind == PortKind::kDynamic) {
      indexes = DynamicInputs(node, port.name);
    } else if (const int index = node.FindInput(port.name); index >= 0) {
      indexes.push_back(index);
    }
    for (int& index : indexes) {
      if (index >= 0 && !node.inputs[static_cast<size_t>(index)]) index = -1;
    }
    const bool fed = !indexes.empty() && indexes[0] >= 0;
    if (port.kind == PortKind::kRequired && !fed) {
      return Error(Code::kCorrupt, "{}: required input \"{}\" is not connected", WhoIs(node),
                   port.name);
    }
    if (port.kind == PortKind::kDynamic) {
      for (size_t i = 0; i < indexes.size(); ++i) {
        if (indexes[i] < 0) {
          return Error(Code::kCorrupt, "{}: element {} of input \"{}\" is not connected",
                       WhoIs(node), i, port.name);
        }
      }
    } else if (indexes.empty()) {
      indexes.push_back(-1);
    }
    context.port_slot_.push_back(static_cast<int>(context.slot_inputs_.size()));
    context.port_count_.push_back(port.kind == PortKind::kDynamic ? static_cast<int>(indexes.size())
                                                                  : (fed ? 1 : 0));
    context.slot_inputs_.insert(context.slot_inputs_.end(), indexes.begin(), indexes.end());
  }
  NPUMESH_RETURN_IF_ERROR(CheckAttrs(node, schema));
  context.slot_types_.resize(context.slot_inputs_.size());
  context.slot_values_.resize(context.slot_inputs_.size(), nullptr);
  context.out_types_.resize(node.output_descs.size());
  return context;
}

int OpContext::slot(std::string_view port) const {
  for (size_t i = 0; i < schema_->inputs.size(); ++i) {
    if (schema_->inputs[i].name == port) return port_slot_[i];
  }
  assert(false && "the schema has no such port");
  return -1;
}

int OpContext::count(std::string_view port) const {
  for (size_t i = 0; i < schema_->inputs.size(); ++i) {
    if (schema_->inputs[i].name == port) return port_count_[i];
  }
  assert(false && "the schema has no such port");
  return 0;
}

namespace {

// True when the schema has an attribute where other forms of the operator have an input.
bool IsAttr(const OpSchema& schema, std::string_view port) {
  for (const PortSpec& input : schema.inputs) {
    if (input.name == port) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<int64_t>> OpContext::Ints(std::string_view port) const {
  if (IsAttr(*schema_, port)) return attr_ints(port);
  const int at = slot(port);
  const Tensor* tensor = has(at) ? value(at) : nullptr;
  if (tensor == nullptr) {
    return Error(Code::kUnsupported, "{}: the value of input \"{}\" must be known before it runs",
                 Who(), port);
  }
  std::vector<int64_t> values;
  if (tensor->dtype() == DataType::kInt64) {
    const auto span = tensor->as<int64_t>();
    values.assign(span.begin(), span.end());
  } else if (tensor->dtype() == DataType::kInt32) {
    const auto span = tensor->as<int32_t>();
    values.assign(span.begin(), span.end());
  } else if (tensor->dtype() == DataType::kInt16) {
    const auto span = tensor->as<int16_t>();
    values.assign(span.begin(), span.end());
  } else {
    return Error(Code::kInvalidArgument, "{}: input \"{}\" is {}, expected int32 or int64", Who(),
                 port, Name(tensor->dtype()));
  }
  return values;
}

Result<int64_t> OpContext::Int(std::string_view port) const {
  if (IsAttr(*schema_, port)) return attr_int(port);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> values, Ints(port));
  if (values.size() != 1) {
    return Error(Code::kInvalidArgument, "{}: input \"{}\" has {} elements, expected one", Who(),
                 port, values.size());
  }
  return values[0];
}

namespace {

const AttrValue* Fallback(const OpSchema& schema, std::string_view name) {
  for (const AttrSpec& spec : schema.attrs) {
    if (spec.name == name) return spec.fallback ? &*spec.fallback : nullptr;
  }
  assert(false && "the schema has no such attribute");
  return nullptr;
}

}  // namespace

int64_t OpContext::attr_int(std::string_view name) const {
  const AttrValue* fallback = Fallback(*schema_, name);
  const auto* value = fallback ? fallback->get<int64_t>() : nullptr;
  return node_->IntAttr(name, value ? *value : 0);
}

float OpContext::attr_float(std::string_view name) const {
  const AttrValue* fallback = Fallback(*schema_, name);
  const auto* value = fallback ? fallback->get<float>() : nullptr;
  return node_->FloatAttr(name, value ? *value : 0.0f);
}

bool OpContext::attr_bool(std::string_view name) const {
  const AttrValue* fallback = Fallback(*schema_, name);
  const auto* value = fallback ? fallback->get<bool>() : nullptr;
  return node_->BoolAttr(name, value ? *value : false);
}

std::string OpContext::attr_string(std::string_view name) const {
  const AttrValue* fallback = Fallback(*schema_, name);
  const auto* value = fallback ? fallback->get<std::string>() : nullptr;
  return node_->StringAttr(name, value ? *value : "");
}

std::vector<int64_t> OpContext::attr_ints(std::string_view name) const {
  if (node_->FindAttr(name) != nullptr) return node_->IntsAttr(name);
  const AttrValue* fallback = Fallback(*schema_, name);
  const auto* list = fallback ? fallback->get<ListAttr>() : nullptr;
  return list ? list->i : std::vector<int64_t>();
}

Result<DataType> OpContext::attr_dtype(std::string_view name) const {
  int64_t number = node_->IntAttr(name, -1);
  if (number < 0) {
    const AttrValue* fallback = Fallback(*schema_, name);
    if (fallback != nullptr && fallback->get<int64_t>()) number = *fallback->get<int64_t>();
    if (fallback != nullptr && fallback->get<DataTypeAttr>()) {
      number = fallback->get<DataTypeAttr>()->number;
    }
  }
  if (const std::optional<DataType> dtype = DataTypeFromRuntime(number)) return *dtype;
  return Error(Code::kCorrupt, "{}: attribute \"{}\" is {}, which is no data type", Who(), name,
               number);
}

std::string OpContext::Who() const {
  return WhoIs(*node_);
}

}  // namespace npumesh
