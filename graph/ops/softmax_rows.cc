// LogSoftmaxV2, the gradients of both softmaxes, L2Normalize: rows along some axes, computed in
// double and rounded once. Ops reference 5.7 and 5.14.
#include <algorithm>
#include <cmath>

#include "graph/ops/infer_checks.h"
#include "graph/ops/layer_families.h"
#include "graph/ops/row_kernel.h"

namespace npumesh {
namespace {

using Body = RowBody<double>;

struct RowOperator {
  std::string_view type;
  std::vector<PortSpec> inputs;
  std::string_view output;
  std::vector<AttrSpec> attrs;
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

const RowOperator kRows[] = {
    {"LogSoftmaxV2",
     {{"logits"}},
     "logsoftmax",
     {{"axes", AttrValue::Ints({-1})}},
     "axes",
     LogSoftmax},
    {"SoftmaxGrad",
     {{"softmax"}, {"grad_softmax"}},
     "grad_x",
     {{"axes", AttrValue::Ints({-1})}},
     "axes",
     SoftmaxGrad},
    {"LogSoftmaxGrad",
     {{"grad"}, {"x"}},
     "y",
     {{"axis", AttrValue::Ints({-1})}},
     "axis",
     LogSoftmaxGrad},
    {"L2Normalize",
     {{"x"}},
     "y",
     {{"axis", AttrValue::Ints({})}, {"eps", AttrValue::Float(1e-4f)}},
     "axis",
     L2Normalize},
};

Status InferRows(OpContext& op, const RowOperator& row) {
  const TensorType& x = op.in(0);
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (WideTypeOf(op.in(slot).dtype) == DataType::kDouble && op.in(slot).shape == x.shape)
      continue;
    return Error(Code::kInvalidArgument,
                 "{}: input \"{}\" is {}, expected a floating type in the shape {}", op.Who(),
                 row.inputs[static_cast<size_t>(slot)].name, op.in(slot).ToString(),
                 x.shape.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(
      ChooseAxes(op, op.attr_ints(row.axes), x.shape.rank(), row.axes).status());
  return SetOutput(op, 0, x.dtype, x.shape);
}

Result<std::unique_ptr<Kernel>> MakeRows(const OpContext& op, const RowOperator& row) {
  const Shape& x = op.in(0).shape;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<bool> chosen,
                           ChooseAxes(op, op.attr_ints(row.axes), x.rank(), row.axes));
  std::vector<int> slots;
  for (int slot = 0; slot < op.slots(); ++slot) slots.push_back(slot);
  Body body = row.body(op, AxisRows(x, chosen).columns());
  return MakeRowKernel<double>(op, slots, chosen, {x, {0}}, std::move(body));
}

}  // namespace

void RegisterSoftmaxRowOps(OpRegistry& registry) {
  for (const RowOperator& row : kRows) {
    registry.Add({.schema = {row.type, row.inputs, {{row.output}}, row.attrs},
                  .infer = [&row](OpContext& op) { return InferRows(op, row); },
                  .make_kernel = [&row](const OpContext& op) { return MakeRows(op, row); }});
  }
}

}  // namespace npumesh
