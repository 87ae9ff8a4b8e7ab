// LogSoftmaxV2, the gradients of both softmaxes, L2Normalize: rows along some axes, computed in
// double and rounded once.
#include <span>
#include <vector>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"

namespace npumesh {
namespace {

using Rows = std::vector<LoopNumber>;
using Inputs = std::span<const LoopNumber>;

Rows LogSoftmax(const OpContext&, Inputs x, double) {
  const LoopNumber below = x[0] - RowLargest(x[0]);
  return {below - LogOf(RowTotal(ExpOf(below)))};
}

// Inputs: the softmax, its gradient.
Rows SoftmaxGrad(const OpContext&, Inputs x, double) {
  return {(x[1] - RowTotal(x[0] * x[1])) * x[0]};
}

// Inputs: the gradient, the log-softmax.
Rows LogSoftmaxGrad(const OpContext&, Inputs x, double) {
  return {x[0] - ExpOf(x[1]) * RowTotal(x[0])};
}

Rows L2Normalize(const OpContext& op, Inputs x, double) {
  const auto least = static_cast<double>(op.attr_float("eps"));
  const LoopNumber norm = RootOf(RowTotal(x[0] * x[0]));
  return {x[0] / Where(norm < least, least, norm)};
}

}  // namespace

void RegisterSoftmaxRowOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  constexpr RowOperator kRows[] = {
      {"LogSoftmaxV2(logits; axes=[-1]) -> logsoftmax", "axes", "", LogSoftmax},
      {"SoftmaxGrad(softmax, grad_softmax; axes=[-1]) -> grad_x", "axes", "", SoftmaxGrad},
      {"LogSoftmaxGrad(grad, x; axis=[-1]) -> y", "axis", "", LogSoftmaxGrad},
      {"L2Normalize(x; axis=[], eps=0.0001) -> y", "axis", "", L2Normalize},
  };
  for (const RowOperator& row : kRows) AddRowOperator(registry, row);
}

}  // namespace npumesh
