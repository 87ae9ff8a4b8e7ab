// LogSoftmaxV2, the gradients of both softmaxes, L2Normalize: rows along some axes, computed in
// double and rounded once.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/ops/reduce/family.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"

namespace npumesh {
namespace {

using Body = RowBody<double>;

Body LogSoftmax(const OpContext&, int64_t n) {
  return [n](const double* x, double* y, int64_t*) {
    const double most = n > 0 ? *std::max_element(x, x + n) : 0;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - most);
    const double logarithm = std::log(sum);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - most - logarithm;
  };
}

// Inputs: the softmax, its gradient.
Body SoftmaxGrad(const OpContext&, int64_t n) {
  return [n](const double* x, double* y, int64_t*) {
    const double dot = std::inner_product(x, x + n, x + n, 0.0);
    for (int64_t i = 0; i < n; ++i) y[i] = (x[n + i] - dot) * x[i];
  };
}

// Inputs: the gradient, the log-softmax.
Body LogSoftmaxGrad(const OpContext&, int64_t n) {
  return [n](const double* x, double* y, int64_t*) {
    const double sum = std::accumulate(x, x + n, 0.0);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - std::exp(x[n + i]) * sum;
  };
}

Body L2Normalize(const OpContext& op, int64_t n) {
  const auto least = static_cast<double>(op.attr_float("eps"));
  return [n, least](const double* x, double* y, int64_t*) {
    const double norm = std::sqrt(std::inner_product(x, x + n, x, 0.0));
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (norm < least ? least : norm);
  };
}

}  // namespace

void RegisterSoftmaxRowOps(OpRegistry& registry) {
  constexpr RowOperator kRows[] = {
      {"LogSoftmaxV2(logits; axes=[-1]) -> logsoftmax", "axes", "", LogSoftmax},
      {"SoftmaxGrad(softmax, grad_softmax; axes=[-1]) -> grad_x", "axes", "", SoftmaxGrad},
      {"LogSoftmaxGrad(grad, x; axis=[-1]) -> y", "axis", "", LogSoftmaxGrad},
      {"L2Normalize(x; axis=[], eps=0.0001) -> y", "axis", "", L2Normalize},
  };
  for (const RowOperator& row : kRows) AddRowOperator(registry, row);
}

}  // namespace npumesh
