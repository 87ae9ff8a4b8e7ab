// EmbeddingBag and EmbeddingDenseGrad: tables whose rows are looked up.
//
// Sums are computed in double and rounded once.
#include <algorithm>
#include <optional>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/index_rows.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

void WriteIndex(void* data, DataType dtype, int64_t i, int64_t value) {
  if (dtype == DataType::kInt64) {
    static_cast<int64_t*>(data)[i] = value;
  } else {
    static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
  }
}

// ---- EmbeddingBag ----

enum class BagMode { kSum, kMean, kMax };

struct BagPlan : Planned {
  IndexSlot indices;  // into the rows of weight
  BagMode mode = BagMode::kMean;
  int64_t columns = 0;  // elements of a row
  int64_t count = 0;    // of the indices
  int64_t bags = 0;
  int64_t bag_length = 0;  // of every bag when the indices are a matrix
  int64_t padding = -1;    // row that is passed over; -1: no row
  Integers offsets;
  std::optional<int> weights;  // slot
  bool last_offset = false;    // one more offset says where the last bag ends
  size_t width = 0;            // bytes of an element
  size_t weight_width = 0;
  ConvertFn load = nullptr, store = nullptr, load_weight = nullptr;
  Workspace<double> row, sum;
};

// How the indices are cut into bags: by rows of a matrix, or by offsets into a vector.
void PlanBags(Check& check, const OpContext& op, BagPlan* plan) {
  const Shape& indices = op.in("indices").shape;
  if (indices.rank() == 2) {
    plan->bags = indices[0];
    plan->bag_length = indices[1];
    return;
  }
  check.That(indices.rank() == 1 && op.has("offsets"),
             "indices are {}, expected a vector with offsets or a matrix", indices);
  check.Type("offsets", kIndices);
  if (!check.ok()) return;
  plan->offsets = Integers::OfSlot(op, op.slot("offsets"));
  plan->last_offset = op.attr_bool("include_last_offset");
  plan->bags = plan->offsets.count() - (plan->last_offset ? 1 : 0);
  check.That(plan->bags >= 0, "\"offsets\" is empty, but include_last_offset is set");
}

void PlanWeights(Check& check, const OpContext& op, BagPlan* plan) {
  if (!op.has("per_sample_weights")) return;
  plan->weights = op.slot("per_sample_weights");
  const TensorType& weights = op.in("per_sample_weights");
  const Shape& indices = op.in("indices").shape;
  check.That(plan->mode == BagMode::kSum && weights.shape == indices,
             "\"per_sample_weights\" {} need mode sum and the shape of the indices, {}", weights,
             indices);
  check.Keep(ExpectReal(op, "per_sample_weights"));
  plan->weight_width = WidthOf(weights.dtype);
  plan->load_weight = FindConvert(weights.dtype, DataType::kDouble);
}

BagPlan PlanBag(const OpContext& op, Check& check) {
  const TensorType &weight = op.in("weight"), &indices = op.in("indices");
  BagPlan plan;
  plan.mode = check.Meaning<BagMode>(
      "mode", {{"sum", BagMode::kSum}, {"mean", BagMode::kMean}, {"max", BagMode::kMax}});
  check.Type("indices", kIndices);
  check.Keep(ExpectReal(op, "weight"));
  check.That(weight.shape.rank() == 2, "weight is {}, expected a matrix", weight);
  if (!check.ok()) return {};
  PlanBags(check, op, &plan);
  PlanWeights(check, op, &plan);
  plan.indices = check.Take(IndexSlot::Of(op, "indices", weight.shape[0]));
  plan.columns = weight.shape[1];
  plan.count = indices.shape.elements();
  plan.padding = op.attr_int("padding_idx");
  plan.width = WidthOf(weight.dtype);
  plan.load = FindConvert(weight.dtype, DataType::kDouble);
  plan.store = FindConvert(DataType::kDouble, weight.dtype);
  plan.scratch.Take(plan.columns, {&plan.row, &plan.sum});
  const bool most = plan.mode == BagMode::kMax;
  plan.outputs = {{weight.dtype, {plan.bags, plan.columns}},
                  {indices.dtype, {plan.count}},
                  {indices.dtype, {plan.bags}},
                  {indices.dtype, most ? Shape({plan.bags, plan.columns}) : Shape({plan.bags})}};
  return plan;
}

// Where a bag that begins at `begin` ends.
Result<int64_t> EndOf(const BagPlan& plan, const KernelArgs& args, int64_t bag, int64_t begin) {
  if (!plan.offsets.given()) return begin + plan.bag_length;
  const auto at = [&](int64_t i) { return plan.offsets.At(args, i); };
  const bool last = bag + 1 == plan.bags && !plan.last_offset;
  const int64_t own = at(bag), end = last ? plan.count : at(bag + 1);
  if (own == begin && end >= begin && end <= plan.count) return end;
  return Error(Code::kInvalidArgument,
               "{}: \"offsets\" put bag {} at {} to {}, expected a bag from {} on within {} "
               "indices",
               plan.indices.who, bag, own, end, begin, plan.count);
}

void AddRow(const BagPlan& plan, const KernelArgs& args, int64_t i) {
  double weight = 1;
  if (plan.weights) {
    plan.load_weight(static_cast<const std::byte*>(args.in[*plan.weights]) +
                         static_cast<size_t>(i) * plan.weight_width,
                     &weight, 1);
  }
  const double* row = plan.row(args);
  double* sum = plan.sum(args);
  for (int64_t c = 0; c < plan.columns; ++c) sum[c] += weight * row[c];
}

void TakeLargest(const BagPlan& plan, const KernelArgs& args, int64_t bag, int64_t index,
                 bool first) {
  const double* row = plan.row(args);
  double* sum = plan.sum(args);
  for (int64_t c = 0; c < plan.columns; ++c) {
    if (!first && !(row[c] > sum[c])) continue;
    sum[c] = row[c];
    WriteIndex(args.out[3], plan.indices.dtype, bag * plan.columns + c, index);
  }
}

Status FillBag(const BagPlan& plan, const KernelArgs& args, int64_t bag, int64_t begin,
               int64_t end) {
  const bool most = plan.mode == BagMode::kMax;
  const DataType dtype = plan.indices.dtype;
  const auto columns = static_cast<size_t>(plan.columns);
  double* sum = plan.sum(args);
  std::fill_n(sum, columns, 0.0);
  int64_t size = 0;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t index = plan.indices.At(args, i);
    if (index == kOutside) return plan.indices.OutsideError(args, i);
    WriteIndex(args.out[1], dtype, i, bag);
    if (index == plan.padding) continue;
    plan.load(static_cast<const std::byte*>(args.in[0]) +
                  static_cast<size_t>(index) * columns * plan.width,
              plan.row(args), columns);
    most ? TakeLargest(plan, args, bag, index, size == 0) : AddRow(plan, args, i);
    ++size;
  }
  for (size_t c = 0; plan.mode == BagMode::kMean && size > 0 && c < columns; ++c) {
    sum[c] /= static_cast<double>(size);
  }
  plan.store(sum,
             static_cast<std::byte*>(args.out[0]) + static_cast<size_t>(bag) * columns * plan.width,
             columns);
  WriteIndex(args.out[2], dtype, bag, size);
  return Status();
}

Status RunBag(const BagPlan& plan, const KernelArgs& args) {
  ClearOutput(plan, args, 3);  // what no maximum comes from
  int64_t begin = 0;
  for (int64_t bag = 0; bag < plan.bags; ++bag) {
    NPUMESH_ASSIGN_OR_RETURN(const int64_t end, EndOf(plan, args, bag, begin));
    NPUMESH_RETURN_IF_ERROR(FillBag(plan, args, bag, begin, end));
    begin = end;
  }
  // Indices after the last bag belong to no bag.
  for (int64_t i = begin; i < plan.count; ++i) {
    WriteIndex(args.out[1], plan.indices.dtype, i, -1);
  }
  return Status();
}

// ---- EmbeddingDenseGrad ----

struct DenseGradPlan : Planned {
  IndexSlot indices;  // into the rows of the table
  int64_t rows = 0;   // of grad
  int64_t columns = 0, padding = -1;
  bool shares = false;  // a row is divided by the number of its uses
  ConvertFn load = nullptr, store = nullptr;
  Workspace<double> grad, y;
  Workspace<int64_t> uses;
};

DenseGradPlan PlanDenseGrad(const OpContext& op, Check& check) {
  const auto& [dtype, grad] = op.in("grad");
  const Shape& indices = op.in("indices").shape;
  check.Type("indices", kIndices);
  check.Keep(ExpectReal(op, "grad"));
  check.That(grad.rank() > 0 && WithoutLast(grad) == indices,
             "grad {} does not have a row for each index of {}", grad, indices);
  if (!check.ok()) return {};
  const int64_t table = op.attr_int("num_weights");
  DenseGradPlan plan;
  plan.rows = indices.elements();
  plan.columns = grad.dims().back();
  const Shape y = {table, plan.columns};
  check.Keep(y.Check().WithContext(op.Who()));
  if (!check.ok()) return {};
  check.Keep(AskForLists(op, SumOfDims({y.elements(), grad.elements(), table})));
  plan.indices = check.Take(IndexSlot::Of(op, "indices", table));
  plan.padding = op.attr_int("padding_idx");
  plan.shares = op.attr_bool("scale_grad_by_freq");
  plan.load = FindConvert(dtype, DataType::kDouble);
  plan.store = FindConvert(DataType::kDouble, dtype);
  plan.grad = plan.scratch.Take<double>(grad.elements());
  plan.y = plan.scratch.Take<double>(y.elements());
  plan.uses = plan.scratch.Take<int64_t>(table);
  plan.outputs = {{dtype, y}};
  return plan;
}

Status RunDenseGrad(const DenseGradPlan& plan, const KernelArgs& args) {
  const int64_t table = plan.indices.bound, columns = plan.columns;
  double *grad = plan.grad(args), *y = plan.y(args);
  int64_t* uses = plan.uses(args);
  std::fill_n(y, table * columns, 0.0);
  std::fill_n(uses, table, 0);
  plan.load(args.in[0], grad, static_cast<size_t>(plan.rows * columns));
  for (int64_t i = 0; i < plan.rows; ++i, grad += columns) {
    const int64_t index = plan.indices.At(args, i);
    if (index == kOutside) return plan.indices.OutsideError(args, i);
    if (index == plan.padding) continue;
    ++uses[index];
    double* to = y + index * columns;
    for (int64_t c = 0; c < columns; ++c) to[c] += grad[c];
  }
  for (int64_t r = 0; plan.shares && r < table; ++r) {
    for (int64_t c = 0; c < columns && uses[r] > 1; ++c) {
      y[r * columns + c] /= static_cast<double>(uses[r]);
    }
  }
  plan.store(y, args.out[0], static_cast<size_t>(table * columns));
  return Status();
}

}  // namespace

void RegisterEmbeddingOps(OpRegistry& registry) {
  registry.Add(Define<PlanBag, RunBag>(
      "EmbeddingBag(weight, indices, offsets?, per_sample_weights?; mode=\"mean\", "
      "scale_grad_by_freq=false, sparse=false, include_last_offset=false, padding_idx=-1) -> y, "
      "offset2bag, bag_size, max_indices",
      {.axes = "weight[r@indices d!], indices[i!..] -> y[n! d]"}));
  registry.Add(Define<PlanDenseGrad, RunDenseGrad>(
      "EmbeddingDenseGrad(grad, indices; num_weights:int, padding_idx=-1, "
      "scale_grad_by_freq=false) -> y"));
}

}  // namespace npumesh
