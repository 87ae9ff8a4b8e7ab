// AddLora: low-rank updates, each row with the matrices that its index names.
//
//   y[row, slice] += scale * weightB[i, layer] (weightA[i, layer] x[row]),  i = indices[row]
//
// Without weightA, x takes the place of the inner product. A negative index leaves the row.
#include <algorithm>
#include <string>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

struct LoraPlan : Planned {
  DataType dtype = DataType::kUndefined;
  int64_t rows = 0;
  int64_t width = 0;    // of y
  int64_t inner = 0;    // of x
  int64_t rank = 0;     // what weightB multiplies
  int64_t slice = 0;    // elements of y that change
  int64_t weights = 0;  // that an index may name
  int64_t layers = 0, layer = 0;
  int64_t offset = 0;
  float scale = 0;
  bool low_rank = false;  // weightA is fed
  Workspace<float> x, weight, product, change, before;
};

LoraPlan PlanLora(const OpContext& op, Check& check) {
  LoraPlan plan;
  const auto [rows, width] = check.Matrix("y", kFloats);
  const auto [x_rows, inner] = check.Matrix("x", kFloats);
  check.Rank("weightB", kFloats, 4);
  check.SameType("x", "y");
  check.SameType("weightB", "y");
  check.Shape("x", {rows, inner});
  check.TypeAndShape("indices", DataType::kInt32, {rows});
  if (!check.ok()) return plan;
  const TensorType &y = op.in("y"), &b = op.in("weightB");
  plan.dtype = y.dtype;
  plan.rows = rows, plan.width = width, plan.inner = inner;
  plan.weights = b.shape[0], plan.layers = b.shape[1];
  plan.slice = b.shape[2], plan.rank = b.shape[3];
  plan.low_rank = SlotIfFed(op, "weightA") >= 0;
  check.TypeAndShape("weightA", y.dtype, {plan.weights, plan.layers, plan.rank, inner});
  check.That(plan.low_rank || plan.rank == inner,
             "weightB is {}, expected rows of {} elements without weightA", b, inner);
  plan.layer = check.Between("layer_idx", 0, plan.layers - 1);
  plan.offset = op.attr_int("y_offset");
  plan.scale = op.attr_float("scale");
  const int64_t slice = op.attr_int("y_slice_size");
  check.That(
      plan.offset >= 0 && (slice < 0 || slice == plan.slice) && plan.offset + plan.slice <= width,
      "y_offset {} and y_slice_size {} do not fit y {} and weightB {}", plan.offset, slice, y, b);
  plan.outputs = {y};
  plan.x = plan.scratch.Floats(inner);
  plan.weight = plan.scratch.Floats(std::max(inner, plan.rank));
  plan.product = plan.scratch.Floats(plan.rank);
  plan.scratch.Take(plan.slice, {&plan.change, &plan.before});
  return plan;
}

// y = the product of a stored matrix with x; `room` holds a row of it.
void Apply(DataType dtype, const void* matrix, int64_t first, int64_t rows, int64_t columns,
           const float* x, float* room, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* weights = LoadRow(dtype, matrix, first + r * columns, columns, room);
    y[r] = static_cast<float>(SumOfProducts(weights, x, columns));
  }
}

void UpdateRow(const LoraPlan& plan, const KernelArgs& args, int64_t row, int64_t matrix) {
  const DataType dtype = plan.dtype;
  const int64_t rank = plan.rank, inner = plan.inner, slice = plan.slice;
  float *weight = plan.weight(args), *change = plan.change(args);
  const float* x = LoadRow(dtype, args.in[1], row * inner, inner, plan.x(args));
  if (plan.low_rank) {
    float* product = plan.product(args);
    Apply(dtype, args.in[4], matrix * rank * inner, rank, inner, x, weight, product);
    x = product;
  }
  Apply(dtype, args.in[2], matrix * slice * rank, slice, rank, x, weight, change);
  const int64_t at = row * plan.width + plan.offset;
  const float* before = LoadRow(dtype, args.out[0], at, slice, plan.before(args));
  for (int64_t i = 0; i < slice; ++i) change[i] = before[i] + plan.scale * change[i];
  StoreRow(dtype, change, args.out[0], at, slice);
}

Status RunLora(const LoraPlan& plan, const KernelArgs& args) {
  const auto* indices = static_cast<const int32_t*>(args.in[3]);
  for (int64_t row = 0; row < plan.rows; ++row) {
    if (indices[row] < 0) continue;
    if (indices[row] >= plan.weights) {
      return Error(Code::kInvalidArgument, "{}: row {} asks for weights {}, there are {}", plan.who,
                   row, indices[row], plan.weights);
    }
    UpdateRow(plan, args, row, indices[row] * plan.layers + plan.layer);
  }
  return Status();
}

}  // namespace

void RegisterLoraOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  registry.Add(Define<PlanLora, RunLora>(
      "AddLora(y, x, weightB, indices, weightA?; layer_idx=0, scale=0.001, y_offset=0, "
      "y_slice_size=-1) -> y",
      {.in_place = {{0, 0}}}));
}

}  // namespace npumesh
