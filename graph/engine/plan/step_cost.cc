#include "graph/engine/plan/step_cost.h"

#include "graph/ops/image/convolution.h"

namespace npumesh {

double FlopsOf(const Operator& op, const OpContext& context) {
  if (context.outputs() == 0) return 0;
  if (!op.axes.product()) return ConvolutionFlops(context);
  const Shape& left = context.in(op.axes.product()->left).shape;
  if (left.rank() < 1) return 0;
  const std::string_view flag = op.axes.product()->left_transposed;
  const bool transposed = left.rank() > 1 && !flag.empty() && context.attr_bool(flag);
  const int64_t k = left.dims()[static_cast<size_t>(left.rank() - (transposed ? 2 : 1))];
  return 2.0 * static_cast<double>(context.out(0).shape.elements()) * static_cast<double>(k);
}

}  // namespace npumesh
