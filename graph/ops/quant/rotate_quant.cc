// RotateQuant: each row, cut into vectors as long as a square matrix, times the matrix; then
// quantised by the largest magnitude of the row, as DynamicQuant does, without a rounding in
// between.
#include <algorithm>

#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/float_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/quantised_row.h"

namespace npumesh {
namespace {

struct RotatePlan : Planned {
  InputRows x;
  DataType matrix_dtype = DataType::kUndefined, to = DataType::kUndefined;
  int64_t matrix = 0;   // its rows and columns
  int64_t at_once = 0;  // rows of x
  int threads = 1;
  Workspace<float> rows, rotated, rotation;
};

RotatePlan PlanRotate(const OpContext& op, Check& check) {
  // The product reads the matrix once for so many vectors.
  constexpr int64_t kVectors = 256;
  RotatePlan plan;
  check.RankAtLeast("x", kFloats, 2);
  check.SameType("rotation", "x");
  const auto [height, width] = check.Matrix("rotation", kFloats);
  plan.to = check.TypeOf("y_dtype", TypeSet(DataType::kInt8) | DataType::kInt4);
  const float alpha = op.attr_float("alpha");
  check.Supported(alpha == 0, "alpha is {}, expected 0: no bound before quantisation", alpha);
  if (!check.ok()) return plan;
  const TensorType& x = op.in("x");
  check.That(height == width && width > 0 && x.shape.dims().back() % width == 0,
             "rotation is {}, expected a square matrix whose width divides that of x {}",
             op.in("rotation"), x);
  CheckPacking(check, plan.to, x.shape);
  if (!check.ok()) return plan;
  plan.x = InputRows::Of(check, op, "x");
  plan.matrix_dtype = op.in("rotation").dtype;
  plan.matrix = width;
  plan.at_once = std::clamp<int64_t>(CeilDiv(kVectors * width, std::max<int64_t>(plan.x.width, 1)),
                                     1, std::max<int64_t>(plan.x.count, 1));
  plan.threads = op.threads();
  plan.scratch.Take(plan.at_once * plan.x.width, {&plan.rows, &plan.rotated});
  plan.rotation = plan.scratch.Floats(width * width);
  plan.outputs = {{plan.to, x.shape}, {DataType::kFloat, WithoutLast(x.shape)}};
  return plan;
}

Status RunRotate(const RotatePlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  const int64_t width = plan.x.width, n = plan.matrix;
  float *const rows = plan.rows(args), *const rotated = plan.rotated(args);
  float* const rotation = plan.rotation(args);
  auto* const scales = static_cast<float*>(args.out[1]);
  LoadNumbers(plan.matrix_dtype, args.in[1], 0, n * n, rotation);
  for (int64_t first = 0; first < plan.x.count; first += plan.at_once) {
    const int64_t count = std::min(plan.at_once, plan.x.count - first);
    LoadNumbers(plan.x.dtype, args.in[plan.x.slot], first * width, count * width, rows);
    NPUMESH_RETURN_IF_ERROR(
        Multiply(count * width / n, n, n, {rows, n}, {rotation, n}, false, rotated, n));
    for (int64_t r = 0; r < count; ++r) {
      scales[first + r] = QuantiseRow(plan.to, Rounding::kNearest, LargestNarrow(plan.to),
                                      rotated + r * width, width, args.out[0], (first + r) * width);
    }
  }
  return Status();
}

}  // namespace

void RegisterRotateQuantOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(
      Define<PlanRotate, RunRotate>("RotateQuant(x, rotation; y_dtype=0, alpha=0.0) -> y, scale"));
}

}  // namespace npumesh
