#include "graph/ops/core/operator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "runtime/base/nearest_name.h"

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

AttrValue PatternOf(Required kind) {
  switch (kind) {
    case Required::kInt:
      return AttrValue::Int(0);
    case Required::kFloat:
      return AttrValue::Float(0);
    case Required::kBool:
      return AttrValue::Bool(false);
    case Required::kString:
      return AttrValue::String("");
    case Required::kType:
      return AttrValue::Type(DataType::kFloat);
    case Required::kInts:
      return AttrValue::Ints({});
    case Required::kFloats:
      return AttrValue::Floats({});
    case Required::kTensor:
      return AttrValue::Variant(
          TensorAttr{std::make_shared<TensorDesc>(), std::make_shared<const std::string>(), ""});
    case Required::kAny:
      break;
  }
  return AttrValue();
}

bool IsUnset(const AttrValue& value) {
  return value.get<OpaqueAttr>() != nullptr;
}

// A list that says nothing of its kind fits every pattern.
bool ListFits(const ListAttr& list, ListKind kind) {
  switch (kind) {
    case ListKind::kInt:
      return list.f.empty() && list.s.empty() && list.b.empty() && list.dt.empty();
    case ListKind::kFloat:
      return list.i.empty() && list.s.empty() && list.b.empty() && list.dt.empty();
    case ListKind::kString:
      return list.i.empty() && list.f.empty() && list.b.empty() && list.dt.empty();
    case ListKind::kBool:
      return list.f.empty() && list.s.empty() && list.dt.empty();
    default:
      return true;
  }
}

bool Fits(const AttrValue& value, const AttrValue& pattern) {
  const auto numeric = [](const AttrValue& v) {
    return v.get<int64_t>() || v.get<bool>() || v.get<DataTypeAttr>();
  };
  if (IsUnset(pattern)) return true;
  const auto* list = pattern.get<ListAttr>();
  if (list != nullptr && value.get<ListAttr>()) return ListFits(*value.get<ListAttr>(), list->kind);
  if (pattern.variant().index() == value.variant().index()) return true;
  if (numeric(value) && numeric(pattern)) return true;
  return value.get<int64_t>() && (pattern.get<float>() || list != nullptr);
}

// "int", "list of floats".
std::string KindText(const AttrValue& value) {
  const auto* list = value.get<ListAttr>();
  if (list == nullptr) return std::string(value.kind());
  const bool floats = !list->f.empty() || list->kind == ListKind::kFloat;
  const bool strings = !list->s.empty() || list->kind == ListKind::kString;
  const bool bools = !list->b.empty() || list->kind == ListKind::kBool;
  const bool types = !list->dt.empty() || list->kind == ListKind::kDataType;
  return fmt::format("list of {}", floats    ? "floats"
                                   : strings ? "strings"
                                   : bools   ? "bools"
                                   : types   ? "data types"
                                             : "ints");
}

bool IsNumber(const AttrValue& value, double* number) {
  if (const auto* f = value.get<float>()) return *number = static_cast<double>(*f), true;
  if (const auto* i = value.get<int64_t>()) return *number = static_cast<double>(*i), true;
  if (const auto* b = value.get<bool>()) return *number = *b ? 1 : 0, true;
  if (const auto* t = value.get<DataTypeAttr>()) {
    return *number = static_cast<double>(t->number), true;
  }
  return false;
}

// An empty list stands for the default.
bool SameValue(const AttrValue& value, const AttrValue& fallback) {
  double mine = 0, theirs = 0;
  if (IsNumber(value, &mine) && IsNumber(fallback, &theirs)) return mine == theirs;
  if (const auto* text = value.get<std::string>()) {
    return fallback.get<std::string>() != nullptr && *text == *fallback.get<std::string>();
  }
  const auto* list = value.get<ListAttr>();
  const auto* known = fallback.get<ListAttr>();
  if (list == nullptr || known == nullptr) return false;
  const bool empty = list->i.empty() && list->f.empty() && list->s.empty() && list->b.empty();
  return empty ||
         (list->i == known->i && list->f == known->f && list->s == known->s && list->b == known->b);
}

Status CheckAttr(const Node& node, const AttrSpec& spec) {
  const AttrValue* value = node.FindAttr(spec.name);
  if (value == nullptr || IsUnset(*value)) {
    if (spec.fallback) return Status();
    return Error(Code::kCorrupt, "{}: required attribute \"{}\" is missing", WhoIs(node),
                 spec.name);
  }
  if (!Fits(*value, spec.pattern)) {
    return Error(Code::kCorrupt, "{}: attribute \"{}\" is of kind {}, expected {}", WhoIs(node),
                 spec.name, KindText(*value), KindText(spec.pattern));
  }
  if (!spec.only_fallback || SameValue(*value, *spec.fallback)) return Status();
  return Error(Code::kUnsupported,
               "{}: attribute \"{}\" has a value other than its default, which npumesh does not "
               "know; leave it out",
               WhoIs(node), spec.name);
}

std::string Similar(const std::string& name, const std::vector<std::string_view>& known) {
  const std::vector<std::string> nearest = NearestNames(name, known);
  return nearest.empty() ? "" : fmt::format(" (similar: {})", fmt::join(nearest, ", "));
}

// What an unlisted attribute means is not known, so a run without it could give other numbers.
Status CheckUnlisted(const Node& node, const OpSchema& schema) {
  for (const auto& [name, value] : node.attrs) {
    const bool listed = std::any_of(schema.attrs.begin(), schema.attrs.end(),
                                    [&](const AttrSpec& spec) { return spec.name == name; });
    if (listed || IsUnset(value) || IsBookkeeping(node, name)) continue;
    std::vector<std::string_view> known;
    for (const AttrSpec& spec : schema.attrs) known.push_back(spec.name);
    return Error(Code::kUnsupported,
                 "{}: attribute \"{}\" is unknown{}; {} has {}. An attribute that does not change "
                 "the result begins with \"_\"",
                 WhoIs(node), name, Similar(name, known), schema.type,
                 known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  }
  return Status();
}

Status CheckAttrs(const Node& node, const OpSchema& schema) {
  for (const AttrSpec& spec : schema.attrs) NPUMESH_RETURN_IF_ERROR(CheckAttr(node, spec));
  return CheckUnlisted(node, schema);
}

}  // namespace

AttrSpec::AttrSpec(std::string_view name, Required kind) : name(name), pattern(PatternOf(kind)) {}

AttrSpec::AttrSpec(std::string_view name, AttrValue fallback)
    : name(name), fallback(fallback), pattern(std::move(fallback)) {}

AttrSpec AttrSpec::Only(std::string_view name, AttrValue value) {
  AttrSpec spec(name, std::move(value));
  spec.only_fallback = true;
  return spec;
}

bool IsBookkeeping(const Node& node, std::string_view attribute) {
  if (attribute.starts_with('_')) return true;
  constexpr std::string_view kOfEveryType[] = {
      // TorchAir. Layouts are hints: the operators that have images read them.
      "nn_module_stack", "torchair_enable_data_dump", "input_layout_info", "output_layout_info",
      // Places in memory and time, of a compiled graph.
      "input_i", "output_i", "stream_id", "workspace", "workspace_bytes", "is_input_const"};
  const auto end = std::end(kOfEveryType);
  if (std::find(std::begin(kOfEveryType), end, attribute) != end) return true;
  const AttrValue* const declared = node.FindAttr("_ir_attr_names");
  const auto* names = declared == nullptr ? nullptr : declared->get<ListAttr>();
  return names != nullptr && !names->s.empty() &&
         std::find(names->s.begin(), names->s.end(), attribute) == names->s.end();
}

std::string GroupOf(const Node& node, const Operator& op) {
  const std::string group = node.StringAttr(op.collective->group, "");
  return group.empty() ? std::string(kWorldGroup) : group;
}

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
