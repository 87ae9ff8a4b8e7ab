#include "graph/ops/core/operator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "graph/ir/node_origin.h"
#include "runtime/base/text/nearest_name.h"

namespace npumesh {
namespace {

// "x" followed by digits only, for element ports of the dynamic input "x".
std::optional<size_t> ElementOf(std::string_view port, std::string_view dynamic) {
  if (port.size() <= dynamic.size() || !port.starts_with(dynamic)) return std::nullopt;
  size_t element = 0;
  for (const char c : port.substr(dynamic.size())) {
    if (c < '0' || c > '9' || element > 1'000'000) return std::nullopt;
    element = element * 10 + static_cast<size_t>(c - '0');
  }
  return element;
}

// Input index of each element of dynamic port `name`, in element order.
std::vector<int> DynamicInputs(const Node& node, std::string_view name) {
  std::vector<int> indexes;
  for (size_t i = 0; i < node.input_descs.size(); ++i) {
    const std::optional<size_t> element = ElementOf(node.input_descs[i].name, name);
    if (!element || *element >= node.input_descs.size()) continue;
    if (*element >= indexes.size()) indexes.resize(*element + 1, -1);
    indexes[*element] = static_cast<int>(i);
  }
  return indexes;
}

// True when the node carries port names at all; hand-made files may not.
bool HasPortNames(const Node& node) {
  const auto named = [](const TensorDesc& desc) { return !desc.name.empty(); };
  return node.input_descs.empty() || std::ranges::any_of(node.input_descs, named);
}

// By kind, in the order of Required.
AttrValue PatternOf(Required kind) {
  static const auto* const patterns = new std::vector<AttrValue>{
      AttrValue::Int(0),
      AttrValue::Float(0),
      AttrValue::Bool(false),
      AttrValue::String(""),
      AttrValue::Type(DataType::kFloat),
      AttrValue::Ints({}),
      AttrValue::Floats({}),
      AttrValue::Variant(
          TensorAttr{std::make_shared<TensorDesc>(), std::make_shared<const std::string>(), ""}),
      AttrValue()};
  return (*patterns)[static_cast<size_t>(kind)];
}

bool IsUnset(const AttrValue& value) {
  return value.get<OpaqueAttr>() != nullptr;
}

// A list that says nothing of its kind fits every pattern; ints stand for bools.
bool ListFits(const ListAttr& list, ListKind kind) {
  const bool ints = kind == ListKind::kInt, floats = kind == ListKind::kFloat;
  const bool strings = kind == ListKind::kString, bools = kind == ListKind::kBool;
  if (!ints && !floats && !strings && !bools) return true;
  return (ints || bools || list.i.empty()) && (floats || list.f.empty()) &&
         (strings || list.s.empty()) && (bools || list.b.empty()) && list.dt.empty();
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

std::optional<double> NumberIn(const AttrValue& value) {
  if (const auto* f = value.get<float>()) return static_cast<double>(*f);
  if (const auto* i = value.get<int64_t>()) return static_cast<double>(*i);
  if (const auto* b = value.get<bool>()) return *b ? 1 : 0;
  if (const auto* t = value.get<DataTypeAttr>()) return static_cast<double>(t->number);
  return std::nullopt;
}

// An empty list stands for the default.
bool SameValue(const AttrValue& value, const AttrValue& fallback) {
  const std::optional<double> number = NumberIn(value), known_number = NumberIn(fallback);
  if (number && known_number) return *number == *known_number;
  const auto *text = value.get<std::string>(), *known_text = fallback.get<std::string>();
  if (text != nullptr) return known_text != nullptr && *text == *known_text;
  const auto *list = value.get<ListAttr>(), *known = fallback.get<ListAttr>();
  if (list == nullptr || known == nullptr) return false;
  const bool empty = list->i.empty() && list->f.empty() && list->s.empty() && list->b.empty();
  return empty ||
         (list->i == known->i && list->f == known->f && list->s == known->s && list->b == known->b);
}

// "; it has "coeficients", which it does not know": a name that was probably meant.
std::string MisspeltFor(const Node& node, const OpSchema& schema, std::string_view wanted) {
  std::vector<std::string_view> strange;
  for (const auto& [name, value] : node.attrs) {
    const auto listed = std::ranges::find(schema.attrs, name, &AttrSpec::name);
    if (listed == schema.attrs.end() && !IsBookkeeping(node, name)) strange.push_back(name);
  }
  const std::vector<std::string> nearest = NearestNames(wanted, strange, 1);
  if (nearest.empty()) return "";
  return fmt::format("; the node has \"{}\", which {} does not know: did you mean that?",
                     nearest[0], schema.type);
}

Status CheckAttr(const Node& node, const OpSchema& schema, const AttrSpec& spec) {
  const AttrValue* value = node.FindAttr(spec.name);
  if (value == nullptr || IsUnset(*value)) {
    if (spec.fallback) return Status();
    return Error(Code::kCorrupt, "{}: required attribute \"{}\" is missing{}", WhoIs(node),
                 spec.name, MisspeltFor(node, schema, spec.name));
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
    const auto listed = std::ranges::find(schema.attrs, name, &AttrSpec::name);
    if (listed != schema.attrs.end() || IsUnset(value) || IsBookkeeping(node, name)) continue;
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

// Input indexes of the tensors of a port, -1 for one that is not connected. `position`: of its
// first input in a node without port names; -1: the node has names.
std::vector<int> InputsOfPort(const Node& node, const PortSpec& port, int position) {
  const bool list = port.kind == PortKind::kDynamic;
  std::vector<int> indexes;
  if (position >= 0) {
    const int left = static_cast<int>(node.inputs.size()) - position;
    for (int i = 0; i < (list ? left : std::min(left, 1)); ++i) indexes.push_back(position + i);
  } else if (list) {
    indexes = DynamicInputs(node, port.name);
  } else if (const int index = node.FindInput(port.name); index >= 0) {
    indexes.push_back(index);
  }
  for (int& index : indexes) {
    if (index >= 0 && !node.inputs[static_cast<size_t>(index)]) index = -1;
  }
  return indexes;
}

Status CheckConnected(const Node& node, const PortSpec& port, const std::vector<int>& indexes) {
  const auto gap = std::find(indexes.begin(), indexes.end(), -1);
  if (port.kind == PortKind::kRequired && (indexes.empty() || gap != indexes.end())) {
    return Error(Code::kCorrupt, "{}: required input \"{}\" is not connected", WhoIs(node),
                 port.name);
  }
  if (port.kind != PortKind::kDynamic || gap == indexes.end()) return Status();
  return Error(Code::kCorrupt, "{}: element {} of input \"{}\" is not connected", WhoIs(node),
               gap - indexes.begin(), port.name);
}

// Number of an input port; -1: the schema has an attribute where other forms of the operator have
// this input.
int PortNumber(const OpSchema& schema, std::string_view name) {
  const auto port = std::ranges::find(schema.inputs, name, &PortSpec::name);
  return port == schema.inputs.end() ? -1 : static_cast<int>(port - schema.inputs.begin());
}

template <typename T>
std::vector<int64_t> IntegersOf(const Tensor& tensor) {
  const std::span<const T> values = tensor.as<T>();
  return {values.begin(), values.end()};
}

// The default of an attribute; `otherwise` where it has none of this kind.
template <typename T>
T FallbackOf(const OpSchema& schema, std::string_view name, T otherwise = T()) {
  const auto spec = std::ranges::find(schema.attrs, name, &AttrSpec::name);
  assert(spec != schema.attrs.end() && "the schema has no such attribute");
  if (spec == schema.attrs.end() || !spec->fallback) return otherwise;
  const T* value = spec->fallback->get<T>();
  return value != nullptr ? *value : otherwise;
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

std::vector<InPlace> InPlacesOf(const Operator& op, const OpContext& context) {
  std::vector<InPlace> places;
  for (const InPlace& place : op.in_place) {
    const PortSpec& port = op.schema.inputs[static_cast<size_t>(place.slot)];
    const int first = context.slot(port.name);
    const int tensors = port.kind == PortKind::kDynamic ? context.count(port.name) : 1;
    for (int i = 0; i < tensors; ++i) places.push_back({place.output + i, first + i});
  }
  return places;
}

std::string GroupOf(const Node& node, const Operator& op) {
  const std::string group = node.StringAttr(op.collective->group, "");
  return group.empty() ? std::string(kWorldGroup) : group;
}

Result<OpContext> OpContext::Bind(const Node& node, const OpSchema& schema) {
  OpContext context;
  context.node_ = &node;
  context.schema_ = &schema;
  int position = HasPortNames(node) ? -1 : 0;
  for (const PortSpec& port : schema.inputs) {
    std::vector<int> indexes = InputsOfPort(node, port, position);
    if (position >= 0) position += static_cast<int>(indexes.size());
    NPUMESH_RETURN_IF_ERROR(CheckConnected(node, port, indexes));
    if (port.kind != PortKind::kDynamic && indexes.empty()) indexes.push_back(-1);
    const auto fed = std::count_if(indexes.begin(), indexes.end(), [](int i) { return i >= 0; });
    context.port_slot_.push_back(static_cast<int>(context.slot_inputs_.size()));
    context.port_count_.push_back(static_cast<int>(fed));
    context.slot_inputs_.insert(context.slot_inputs_.end(), indexes.begin(), indexes.end());
  }
  for (const AttrSpec& spec : schema.attrs) NPUMESH_RETURN_IF_ERROR(CheckAttr(node, schema, spec));
  NPUMESH_RETURN_IF_ERROR(CheckUnlisted(node, schema));
  context.slot_types_.resize(context.slot_inputs_.size());
  context.slot_values_.resize(context.slot_inputs_.size(), nullptr);
  context.out_types_.resize(node.output_descs.size());
  return context;
}

int OpContext::slot(std::string_view port) const {
  const int number = PortNumber(*schema_, port);
  assert(number >= 0 && "the schema has no such port");
  return number < 0 ? -1 : port_slot_[static_cast<size_t>(number)];
}

int OpContext::count(std::string_view port) const {
  const int number = PortNumber(*schema_, port);
  assert(number >= 0 && "the schema has no such port");
  return number < 0 ? 0 : port_count_[static_cast<size_t>(number)];
}

Result<std::vector<int64_t>> OpContext::Ints(std::string_view port) const {
  if (PortNumber(*schema_, port) < 0) return attr_ints(port);
  const int at = slot(port);
  const Tensor* tensor = has(at) ? value(at) : nullptr;
  if (tensor == nullptr) {
    return Error(Code::kUnsupported, "{}: the value of input \"{}\" must be known before it runs",
                 Who(), port);
  }
  const DataType dtype = tensor->dtype();
  if (dtype == DataType::kInt64) return IntegersOf<int64_t>(*tensor);
  if (dtype == DataType::kInt32) return IntegersOf<int32_t>(*tensor);
  if (dtype == DataType::kInt16) return IntegersOf<int16_t>(*tensor);
  return Error(Code::kInvalidArgument, "{}: input \"{}\" is {}, expected int32 or int64", Who(),
               port, Name(dtype));
}

Result<int64_t> OpContext::Int(std::string_view port) const {
  if (PortNumber(*schema_, port) < 0) return attr_int(port);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> values, Ints(port));
  if (values.size() != 1) {
    return Error(Code::kInvalidArgument, "{}: input \"{}\" has {} elements, expected one", Who(),
                 port, values.size());
  }
  return values[0];
}

int64_t OpContext::attr_int(std::string_view name) const {
  return node_->IntAttr(name, FallbackOf<int64_t>(*schema_, name));
}

float OpContext::attr_float(std::string_view name) const {
  return node_->FloatAttr(name, FallbackOf<float>(*schema_, name));
}

bool OpContext::attr_bool(std::string_view name) const {
  return node_->BoolAttr(name, FallbackOf<bool>(*schema_, name));
}

std::string OpContext::attr_string(std::string_view name) const {
  return node_->StringAttr(name, FallbackOf<std::string>(*schema_, name));
}

std::vector<int64_t> OpContext::attr_ints(std::string_view name) const {
  if (node_->FindAttr(name) != nullptr) return node_->IntsAttr(name);
  return FallbackOf<ListAttr>(*schema_, name).i;
}

Result<DataType> OpContext::attr_dtype(std::string_view name) const {
  int64_t number = node_->IntAttr(name, -1);
  if (number < 0) {
    number = FallbackOf<int64_t>(*schema_, name, number);
    number = FallbackOf<DataTypeAttr>(*schema_, name, {number}).number;
  }
  if (const std::optional<DataType> dtype = DataTypeFromRuntime(number)) return *dtype;
  return Error(Code::kCorrupt, "{}: attribute \"{}\" is {}, which is no data type", Who(), name,
               number);
}

std::string OpContext::Who() const {
  return WhoIs(*node_);
}

}  // namespace npumesh
