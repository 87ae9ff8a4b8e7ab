#include "graph/ir/attr_value.h"

#include <array>
#include <utility>

#include "graph/ir/graph.h"

namespace npumesh {
namespace {

template <typename T>
AttrValue ListOf(ListKind kind, std::vector<T> ListAttr::*elements, std::vector<T> values) {
  ListAttr list;
  list.kind = kind;
  list.*elements = std::move(values);
  return AttrValue::Variant(std::move(list));
}

}  // namespace

AttrValue::AttrValue() = default;
AttrValue::AttrValue(Variant value) : value_(std::move(value)) {}
AttrValue::AttrValue(const AttrValue&) = default;
AttrValue::AttrValue(AttrValue&&) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue&) = default;
AttrValue& AttrValue::operator=(AttrValue&&) noexcept = default;
AttrValue::~AttrValue() = default;

AttrValue AttrValue::Int(int64_t v) {
  return Variant(std::in_place_type<int64_t>, v);
}

AttrValue AttrValue::Float(float v) {
  return Variant(std::in_place_type<float>, v);
}

AttrValue AttrValue::Bool(bool v) {
  return Variant(std::in_place_type<bool>, v);
}

AttrValue AttrValue::String(std::string v) {
  return Variant(std::in_place_type<std::string>, std::move(v));
}

AttrValue AttrValue::Type(DataType v) {
  return Variant(DataTypeAttr{static_cast<int64_t>(v)});
}

AttrValue AttrValue::Ints(std::vector<int64_t> v) {
  return ListOf(ListKind::kInt, &ListAttr::i, std::move(v));
}

AttrValue AttrValue::Floats(std::vector<float> v) {
  return ListOf(ListKind::kFloat, &ListAttr::f, std::move(v));
}

AttrValue AttrValue::Strings(std::vector<std::string> v) {
  return ListOf(ListKind::kString, &ListAttr::s, std::move(v));
}

AttrValue AttrValue::Bools(std::vector<bool> v) {
  return ListOf(ListKind::kBool, &ListAttr::b, std::move(v));
}

AttrValue AttrValue::Value(const Tensor& tensor) {
  TensorAttr attr;
  attr.desc = std::make_shared<TensorDesc>();
  attr.desc->dtype = tensor.dtype();
  attr.desc->shape = tensor.shape();
  attr.data = tensor.string();
  if (attr.data == nullptr) {
    attr.data = std::make_shared<const std::string>(reinterpret_cast<const char*>(tensor.data()),
                                                    tensor.bytes());
  }
  return Variant(std::move(attr));
}

std::string_view AttrValue::kind() const {
  static constexpr std::array<std::string_view, std::variant_size_v<Variant>> kNames = {
      "opaque",
      "int",
      "float",
      "bool",
      "string",
      "bytes",
      "dtype",
      "tensor",
      "tensor desc",
      "list",
      "named attrs",
      "list of int lists",
      "list of float lists"};
  return kNames[value_.index()];
}

}  // namespace npumesh
