// Reductions that need whole rows at once: deviations, norms, logarithms of sums. Ops
// reference 5.5.
//
// Statistics are computed in two passes in double and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/row_kernel.h"

namespace npumesh {
namespace {

using Body = RowBody<double>;

// A row operator over some axes of x.
struct StatisticRow {
  std::string_view type;
  std::vector<PortSpec> inputs;
  std::vector<PortSpec> outputs;
  std::vector<AttrSpec> attrs;
  std::string_view axes;  // port or attribute
  std::string_view keep;  // attribute
  Body (*body)(const OpContext& op, int64_t columns);
};

double Mean(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum / static_cast<double>(n);
}

// Sum of the squared distances from `mean`, which has one element for all or one for each.
double Spread(const double* x, int64_t n, const double* mean, int64_t step) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double distance = x[i] - mean[i * step];
    sum += distance * distance;
  }
  return sum;
}

// Variance of n elements of which `correction` are not independent. Too few of them give what 0 in
// the denominator gives.
double Variance(double spread, int64_t n, int64_t correction) {
  return spread / static_cast<double>(std::max<int64_t>(n - correction, 0));
}

Body DeviationBody(int64_t n, int64_t correction) {
  return [n, correction](const double* x, double* values, int64_t*) {
    const double mean = Mean(x, n);
    values[0] = std::sqrt(Variance(Spread(x, n, &mean, 0), n, correction));
    values[1] = mean;
  };
}

Body StdV2(const OpContext& op, int64_t n) {
  return DeviationBody(n, op.attr_int("correction"));
}

Body Std(const OpContext& op, int64_t n) {
  return DeviationBody(n, op.attr_bool("unbiased") ? 1 : 0);
}

Body StdWithMean(const OpContext& op, int64_t n) {
  const int64_t correction = op.attr_bool("unbiased") ? op.attr_int("correction") : 0;
  const bool invert = op.attr_bool("invert");
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return [=](const double* x, double* values, int64_t*) {
    const double variance = Variance(Spread(x, n, x + n, 1), n, correction);
    values[0] = invert ? 1 / std::sqrt(variance + epsilon) : std::sqrt(variance);
  };
}

Body LogSumExp(const OpContext&, int64_t n) {
  return [n](const double* x, double* values, int64_t*) {
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) most = x[i] > most || std::isnan(x[i]) ? x[i] : most;
    if (std::isinf(most)) {
      values[0] = most;
      return;
    }
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - most);
    values[0] = most + std::log(sum);
  };
}

Body LogSum(const OpContext&, int64_t n) {
  return [n](const double* x, double* values, int64_t*) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    values[0] = std::log(sum);
  };
}

double PNorm(const double* x, int64_t n, double p) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += p == 0 ? x[i] != 0 : std::pow(std::fabs(x[i]), p);
  return p == 0 ? sum : std::pow(sum, 1 / p);
}

// The largest or smallest magnitude; NaN wins.
double InfiniteNorm(const double* x, int64_t n, bool largest) {
  double best = largest ? 0 : std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    const double magnitude = std::fabs(x[i]);
    const bool better = largest ? magnitude > best : magnitude < best;
    if (better || std::isnan(magnitude)) best = magnitude;
  }
  return best;
}

// TorchAir writes the infinite orders as the limits of int32.
Body LpNorm(const OpContext& op, int64_t n) {
  const auto p = static_cast<double>(op.attr_float("p"));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return [=](const double* x, double* values, int64_t*) {
    const double norm = std::fabs(p) >= 2147483647.0 ? InfiniteNorm(x, n, p > 0) : PNorm(x, n, p);
    values[0] = norm < epsilon ? epsilon : norm;
  };
}

const StatisticRow kRows[] = {
    {"ReduceStdV2",
     {{"x"}},
     {{"std"}, {"mean"}},
     {{"dim", AttrValue::Ints({})},
      {"correction", AttrValue::Int(1)},
      {"keepdim", AttrValue::Bool(false)},
      {"is_mean_out", AttrValue::Bool(true)}},
     "dim",
     "keepdim",
     StdV2},
    {"ReduceStd",
     {{"x"}},
     {{"y1"}, {"y2"}},
     {{"dim", AttrValue::Ints({})},
      {"unbiased", AttrValue::Bool(true)},
      {"keepdim", AttrValue::Bool(false)}},
     "dim",
     "keepdim",
     Std},
    {"ReduceStdWithMean",
     {{"x"}, {"mean"}},
     {{"y"}},
     {{"dim", AttrValue::Ints({})},
      {"unbiased", AttrValue::Bool(true)},
      {"keepdim", AttrValue::Bool(false)},
      {"invert", AttrValue::Bool(false)},
      {"epsilon", AttrValue::Float(0.001f)},
      {"correction", AttrValue::Int(1)}},
     "dim",
     "keepdim",
     StdWithMean},
    {"ReduceLogSumExp",
     {{"x"}, {"axes"}},
     {{"y"}},
     {{"keep_dims", AttrValue::Bool(false)}, {"noop_with_empty_axes", AttrValue::Bool(false)}},
     "axes",
     "keep_dims",
     LogSumExp},
    {"ReduceLogSum",
     {{"x"}, {"axes"}},
     {{"y"}},
     {{"keep_dims", AttrValue::Bool(false)}},
     "axes",
     "keep_dims",
     LogSum},
    {"LpNormV2",
     {{"x"}},
     {{"y"}},
     {{"p", AttrValue::Float(2.0f)},
      {"axes", AttrValue::Ints({})},
      {"keepdim", AttrValue::Bool(false)},
      {"epsilon", AttrValue::Float(1e-12f)}},
     "axes",
     "keepdim",
     LpNorm},
};

bool AxesAreInput(const StatisticRow& row) {
  return row.inputs.back().name == row.axes;
}

// The axes to reduce. No axes mean all of them, or none when the operator says so.
Result<std::vector<bool>> ChosenAxes(const OpContext& op, const StatisticRow& row) {
  const int rank = op.in("x").shape.rank();
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, op.Ints(row.axes));
  for (const AttrSpec& attr : row.attrs) {
    if (attr.name == "noop_with_empty_axes" && axes.empty() && op.attr_bool(attr.name)) {
      return std::vector<bool>(static_cast<size_t>(rank), false);
    }
  }
  return ChooseAxes(op, axes, rank, row.axes);
}

Status InferStatistic(OpContext& op, const StatisticRow& row) {
  const TensorType& x = op.in("x");
  if (WideTypeOf(x.dtype) != DataType::kDouble) {
    return Error(Code::kUnsupported, "{}: x is {}, expected a floating type", op.Who(),
                 x.ToString());
  }
  if (row.inputs.size() == 2 && !AxesAreInput(row) && op.in(1) != x) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected the type and shape of x, {}",
                 op.Who(), row.inputs[1].name, op.in(1).ToString(), x.ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<bool> chosen, ChosenAxes(op, row));
  const Shape shape = Reduced(x.shape, chosen, op.attr_bool(row.keep));
  for (size_t i = 0; i < row.outputs.size(); ++i) {
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, static_cast<int>(i), x.dtype, shape));
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeStatistic(const OpContext& op, const StatisticRow& row) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<bool> chosen, ChosenAxes(op, row));
  const Shape& x = op.in("x").shape;
  std::vector<int> slots = {0};
  if (row.inputs.size() == 2 && !AxesAreInput(row)) slots.push_back(1);
  RowOutputs outputs{Reduced(x, chosen, true), {0}};
  if (row.outputs.size() == 2) outputs.values.push_back(1);
  Body body = row.body(op, AxisRows(x, chosen).columns());
  return MakeRowKernel<double>(op, slots, chosen, outputs, std::move(body));
}

}  // namespace

void RegisterStatisticOps(OpRegistry& registry) {
  for (const StatisticRow& row : kRows) {
    Operator op;
    op.schema = {row.type, row.inputs, row.outputs, row.attrs};
    op.infer = [&row](OpContext& context) { return InferStatistic(context, row); };
    op.make_kernel = [&row](const OpContext& context) { return MakeStatistic(context, row); };
    if (AxesAreInput(row)) op.value_inputs = {row.axes};
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
