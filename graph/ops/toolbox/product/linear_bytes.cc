#include "graph/ops/toolbox/product/linear_bytes.h"

#include <algorithm>

namespace npumesh {

int OptionalSlot(const OpContext& op, Check& check, std::string_view port, TypeSet types,
                 std::initializer_list<int64_t> counts) {
  if (!op.has(port)) return -1;
  check.Type(port, types);
  check.Elements(port, counts);
  return op.slot(port);
}

LinearEnd LinearEnd::Of(const OpContext& op, Check& check, int64_t columns) {
  LinearEnd end = {.columns = columns};
  end.y = check.TypeOf("dtype", kLinearBytes | DataType::kInt32 | DataType::kFloat,
                       Code::kInvalidArgument);
  end.bias = OptionalSlot(op, check, "bias", DataType::kInt32, {columns});
  end.scale = OptionalSlot(op, check, "scale", DataType::kFloat, {1, columns});
  end.y_zero = OptionalSlot(op, check, "y_zero", end.y, {1});
  check.That((end.y == DataType::kInt32) == (end.scale < 0),
             "\"scale\" is {}fed for an output of {}", end.scale < 0 ? "not " : "", Name(end.y));
  check.That(end.y_zero < 0 || kLinearBytes.Contains(end.y),
             "\"y_zero\" is fed for an output of {}", Name(end.y));
  end.one_scale = check.ok() && end.scale >= 0 && op.in(end.scale).shape.elements() == 1;
  return end;
}

ByteRounding LinearEnd::Load(const KernelArgs& args, int32_t* added, float* scales) const {
  std::fill_n(added, columns, 0);
  if (bias >= 0) std::copy_n(static_cast<const int32_t*>(args.in[bias]), columns, added);
  if (scale >= 0) {
    const auto* const from = static_cast<const float*>(args.in[scale]);
    for (int64_t c = 0; c < columns; ++c) scales[c] = from[one_scale ? 0 : c];
  }
  const int32_t zero = y_zero < 0 ? 0 : ByteAt(y, args.in[y_zero], 0);
  return {.y = y, .added = added, .scale = scales, .zero = zero};
}

}  // namespace npumesh
