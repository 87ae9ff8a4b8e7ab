#include "graph/ir/graph_input.h"

namespace npumesh {

TensorDesc GraphInputDesc(const Node& node) {
  TensorDesc desc;
  desc.dtype = DataType::kUndefined;
  if (!node.output_descs.empty()) desc = node.output_descs[0];
  if (node.input_descs.empty()) return desc;
  const TensorDesc& fed = node.input_descs[0];
  if (fed.dtype != DataType::kUndefined) desc.dtype = fed.dtype;
  const bool origin = desc.attrs.contains("origin_shape");
  const bool says_dims = fed.shape && (fed.shape->rank() > 0 || !desc.shape);
  if (says_dims && !origin) desc.shape = fed.shape;
  return desc;
}

}  // namespace npumesh
