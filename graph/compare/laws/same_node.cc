#include "graph/compare/laws/same_node.h"

namespace npumesh {
namespace {

bool Same(const OpaqueAttr& a, const OpaqueAttr& b) {
  return a.bytes == b.bytes;
}
bool Same(const BytesAttr& a, const BytesAttr& b) {
  return a.bytes == b.bytes;
}
bool Same(const DataTypeAttr& a, const DataTypeAttr& b) {
  return a.number == b.number;
}
bool Same(const ListListInt& a, const ListListInt& b) {
  return a.values == b.values;
}
bool Same(const ListListFloat& a, const ListListFloat& b) {
  return a.values == b.values;
}
bool Same(const ListAttr& a, const ListAttr& b) {
  return a.s == b.s && a.i == b.i && a.f == b.f && a.b == b.b && a.dt == b.dt &&
         a.opaque == b.opaque;
}
bool Same(const TensorAttr& a, const TensorAttr& b) {
  return a.desc->dtype == b.desc->dtype && a.desc->shape == b.desc->shape && *a.data == *b.data;
}
bool Same(const TensorDescAttr& a, const TensorDescAttr& b) {
  return a.desc->dtype == b.desc->dtype && a.desc->shape == b.desc->shape;
}
bool Same(const NamedAttrs& a, const NamedAttrs& b) {
  return a.name == b.name && a.opaque == b.opaque && a.attrs->empty() && b.attrs->empty();
}
bool Same(int64_t a, int64_t b) {
  return a == b;
}
bool Same(float a, float b) {
  return a == b;
}
bool Same(bool a, bool b) {
  return a == b;
}
bool Same(const std::string& a, const std::string& b) {
  return a == b;
}

}  // namespace

bool SameAttr(const AttrValue& a, const AttrValue& b) {
  return std::visit(
      [](const auto& x, const auto& y) {
        if constexpr (std::is_same_v<decltype(x), decltype(y)>) {
          return Same(x, y);
        } else {
          return false;
        }
      },
      a.variant(), b.variant());
}

bool SameFunction(const Node& a, const Node& b, const OpSchema& schema) {
  if (a.type != b.type || a.inputs.size() != b.inputs.size()) return false;
  for (const AttrSpec& spec : schema.attrs) {
    const AttrValue* const fallback = spec.fallback ? &*spec.fallback : nullptr;
    const AttrValue* const mine = a.FindAttr(spec.name);
    const AttrValue* const theirs = b.FindAttr(spec.name);
    const AttrValue* const x = mine != nullptr ? mine : fallback;
    const AttrValue* const y = theirs != nullptr ? theirs : fallback;
    if (x == y) continue;
    if (x == nullptr || y == nullptr || !SameAttr(*x, *y)) return false;
  }
  return true;
}

}  // namespace npumesh
