// Tensor descriptors: the half of the codec that knows about dtypes, shapes and layouts.
#include <optional>
#include <utility>

#include "graph/io/attr_codec.h"
#include "graph/io/layout.h"
#include "graph/io/wire.h"

namespace npumesh {
namespace {

namespace pb = ge::proto;

constexpr char kDataTypeOverride[] = "__tensor_desc_data_type__";

// The private numbering of the override attribute: duals at 13 to 15, otherwise the runtime numbers
// of complex and quantised types.
std::optional<DataType> OverrideType(int64_t number) {
  if (number == 13) return DataType::kDual;
  if ((number >= 14 && number <= 22) || number == 33) return DataTypeFromRuntime(number);
  return std::nullopt;
}

// What GE's loader takes as the dtype; kUndefined for a number that no version defines.
DataType EffectiveType(const pb::TensorDescriptor& def) {
  const auto attr = def.attr().find(kDataTypeOverride);
  if (attr != def.attr().end() && attr->second.value_case() == pb::AttrDef::kI) {
    if (const auto dtype = OverrideType(attr->second.i())) return *dtype;
  }
  return DataTypeFromProto(def.dtype()).value_or(DataType::kUndefined);
}

const std::vector<int64_t>* OriginShape(const AttrMap& attrs) {
  const auto set = attrs.find("origin_shape_initialized");
  if (set == attrs.end() || set->second.get<bool>() == nullptr || !*set->second.get<bool>()) {
    return nullptr;
  }
  const auto shape = attrs.find("origin_shape");
  if (shape == attrs.end()) return nullptr;
  const ListAttr* list = shape->second.get<ListAttr>();
  return list != nullptr ? &list->i : nullptr;
}

int64_t LayoutOf(const TensorDesc& desc) {
  const auto attr = desc.attrs.find("format_for_int");
  const int64_t* number = attr == desc.attrs.end() ? nullptr : attr->second.get<int64_t>();
  return number != nullptr ? *number : LayoutNumber(desc.layout);
}

// TorchAir clears the shape of an input in a private layout and leaves it in `origin_shape`.
bool ShapeStandsInOrigin(const TensorDesc& desc) {
  const std::vector<int64_t>* origin = OriginShape(desc.attrs);
  return origin != nullptr && desc.shape && desc.shape->dims() == *origin &&
         desc.attrs.contains("origin_format_is_set") && IsPrivateLayout(LayoutOf(desc));
}

void TakeShape(pb::TensorDescriptor& def, TensorDesc* desc) {
  if (def.has_shape()) {
    pb::ShapeDef* shape = def.mutable_shape();
    desc->shape = Shape(std::vector<int64_t>(shape->dim().begin(), shape->dim().end()));
    shape->clear_dim();
    if (!HasUnknownFields(*shape)) def.clear_shape();
  }
  if (desc->shape && desc->shape->rank() > 0) return;
  const std::vector<int64_t>* origin = OriginShape(desc->attrs);
  if (origin != nullptr) desc->shape = Shape(*origin);
}

// The attribute of that name wins over the field; only the field is kept.
std::string TakeDeviceType(pb::TensorDescriptor& def, AttrMap* attrs) {
  std::string device = std::exchange(*def.mutable_device_type(), {});
  const auto attr = attrs->find("device_type");
  if (attr == attrs->end()) return device;
  if (std::string* text = attr->second.get<std::string>()) {
    device = std::move(*text);
    attrs->erase(attr);
  }
  return device;
}

void AddIfAbsent(const std::string& key, AttrValue value, AttrDefs* defs) {
  if (!defs->contains(key)) EncodeAttr(value, Form::kGe, &(*defs)[key]);
}

int64_t OriginLayout(const TensorDesc& desc) {
  const auto number = desc.attrs.find("origin_format_for_int");
  if (number != desc.attrs.end()) {
    if (const int64_t* i = number->second.get<int64_t>()) return *i;
  }
  const auto name = desc.attrs.find("origin_format");
  if (name != desc.attrs.end()) {
    if (const std::string* s = name->second.get<std::string>()) return LayoutNumber(*s);
  }
  return kNdLayout;
}

void AddWhatGeExpects(const TensorDesc& desc, pb::TensorDescriptor* def) {
  if (def->device_type().empty()) def->set_device_type("NPU");
  AttrDefs* attrs = def->mutable_attr();
  const int64_t origin = OriginLayout(desc);
  AddIfAbsent("format_for_int", AttrValue::Int(LayoutOf(desc)), attrs);
  AddIfAbsent("origin_format", AttrValue::String(LayoutName(origin)), attrs);
  AddIfAbsent("origin_format_for_int", AttrValue::Int(origin), attrs);
  AddIfAbsent("origin_shape_initialized", AttrValue::Bool(false), attrs);
}

}  // namespace

TensorDesc DecodeDesc(pb::TensorDescriptor& def) {
  TensorDesc desc;
  desc.name = std::exchange(*def.mutable_name(), {});
  desc.dtype = EffectiveType(def);
  const bool overridden = def.attr().contains(kDataTypeOverride);
  if (!overridden && DataTypeFromProto(def.dtype())) def.clear_dtype();
  desc.layout = std::exchange(*def.mutable_layout(), {});
  desc.attrs = DecodeAttrs(def.mutable_attr());
  desc.device_type = TakeDeviceType(def, &desc.attrs);
  TakeShape(def, &desc);
  desc.opaque = Remainder(def);
  return desc;
}

void EncodeDesc(const TensorDesc& desc, Form form, pb::TensorDescriptor* def) {
  RestoreRemainder(desc.opaque, def);
  def->set_name(desc.name);
  def->set_layout(desc.layout);
  def->set_device_type(desc.device_type);
  EncodeAttrs(desc.attrs, form, def->mutable_attr());
  if (EffectiveType(*def) != desc.dtype) {
    def->mutable_attr()->erase(kDataTypeOverride);
    def->set_dtype(static_cast<pb::DataType>(ProtoNumber(desc.dtype)));
  }
  if (desc.shape) {
    auto* dims = def->mutable_shape()->mutable_dim();
    if (!ShapeStandsInOrigin(desc)) {
      dims->Assign(desc.shape->dims().begin(), desc.shape->dims().end());
    }
  }
  if (form == Form::kGe) AddWhatGeExpects(desc, def);
}

}  // namespace npumesh
