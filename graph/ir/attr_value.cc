#include "graph/ir/attr_value.h"

#include <array>

#include "graph/ir/graph.h"

namespace npumesh {

AttrValue AttrValue::Value(const Tensor& tensor) {
  TensorAttr attr;
  attr.desc = std::make_shared<TensorDesc>();
  attr.desc->dtype = tensor.dtype();
  attr.desc->shape = tensor.shape();
  attr.data = std::make_shared<const std::string>(reinterpret_cast<const char*>(tensor.data()),
                                                  tensor.bytes());
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
