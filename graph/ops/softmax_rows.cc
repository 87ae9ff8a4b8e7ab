// LogSoftmaxV2, the gradients of both softmaxes, L2Normalize: rows along some axes, computed in
// double and rounded once.
#include <algorithm>
#include <cmath>

#include "graph/ops/check.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/layer_families.h"
#include "graph/ops/row_kernel.h"
#include "graph/ops/signature.h"

namespace npumesh {
namespace {

using Body = RowBody<double>;

// All inputs have the shape of the first, as has the output.
struct RowOperator {
  std::string_view signature;
  std::string_view axes;  // attribute
  Body (*body)(const OpContext& op, int64_t columns);
};

Body LogSoftmax(const OpContext&, int64_t n) {
  return [n](const double* x, double* y, int64_t*) {
    const double most = n > 0 ? *std::max_element(x, x + n) : 0;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - most);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - most - std::log(sum);
  };
}

// Inputs: the softmax, its gradient.
Body SoftmaxGrad(const OpContext&, int64_t n) {
  return [n](const double* x, double* y, int64_t*) {
    double dot = 0;
    for (int64_t i = 0; i < n; ++i) dot += x[i] * x[n + i];
    for (int64_t i = 0; i < n; ++i) y[i] = (x[n + i] - dot) * x[i];
  };
}

// Inputs: the gradient, the log-softmax.
Body LogSoftmaxGrad(const OpContext&, int64_t n) {
  return [n](const double* x, double* y, int64_t*) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - std::exp(x[n + i]) * sum;
  };
}

Body L2Normalize(const OpContext& op, int64_t n) {
  const auto least = static_cast<double>(op.attr_float("eps"));
  return [n, least](const double* x, double* y, int64_t*) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
    const double norm = std::sqrt(squares);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (norm < least ? least : norm);
  };
}

constexpr RowOperator kRows[] = {
    {"LogSoftmaxV2(logits; axes=[-1]) -> logsoftmax", "axes", LogSoftmax},
    {"SoftmaxGrad(softmax, grad_softmax; axes=[-1]) -> grad_x", "axes", SoftmaxGrad},
    {"LogSoftmaxGrad(grad, x; axis=[-1]) -> y", "axis", LogSoftmaxGrad},
    {"L2Normalize(x; axis=[], eps=0.0001) -> y", "axis", L2Normalize},
};

Status InferRows(OpContext& op, const RowOperator& row) {
  Check check(op);
  const TensorType& x = op.in(0);
  for (const PortSpec& port : op.schema().inputs) {
    check.TypeAndShape(port.name, kFloatsAndDouble, x.shape);
  }
  check.Keep(ChooseAxes(op, x, op.attr_ints(row.axes), row.axes).status());
  return check.ok() ? SetOutput(op, 0, x.dtype, x.shape) : check.status();
}

Result<std::unique_ptr<Kernel>> MakeRows(const OpContext& op, const RowOperator& row) {
  const TensorType& x = op.in(0);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<bool> chosen,
                           ChooseAxes(op, x, op.attr_ints(row.axes), row.axes));
  std::vector<int> slots;
  for (int slot = 0; slot < op.slots(); ++slot) slots.push_back(slot);
  Body body = row.body(op, AxisRows(x.shape, chosen).columns());
  return MakeRowKernel<double>(op, slots, chosen, {x.shape, {0}}, std::move(body));
}

}  // namespace

void RegisterSoftmaxRowOps(OpRegistry& registry) {
  for (const RowOperator& row : kRows) {
    registry.Add({.schema = Signature(row.signature),
                  .infer = [&row](OpContext& op) { return InferRows(op, row); },
                  .make_kernel = [&row](const OpContext& op) { return MakeRows(op, row); }});
  }
}

}  // namespace npumesh
