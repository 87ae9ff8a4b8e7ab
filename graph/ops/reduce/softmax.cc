// SoftmaxV2: exp(x - max) / sum over the axes.
//
// Rows are computed in float32 (double for double) and rounded once. Axes that are not the last
// ones are first brought to the end by a transposition into scratch.
#include <algorithm>
#include <cmath>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/reduce/family.h"
#include "graph/ops/toolbox/copy/strided_copy.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/row_math.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

void SoftmaxOfDoubles(const double* x, int64_t count, double* y) {
  const double most = *std::max_element(x, x + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    y[i] = std::exp(x[i] - most);
    sum += y[i];
  }
  for (int64_t i = 0; i < count; ++i) y[i] /= sum;
}

struct SoftmaxPlan : Planned {
  DataType from = DataType::kFloat, to = DataType::kFloat;
  int64_t rows = 1, columns = 1;
  int parts = 1;       // threads that share the rows out
  bool moved = false;  // the axes are not the last ones
  StridedCopy gather, scatter;
  Workspace<float> x_row, y_row;  // of each part
  Workspace<std::byte> x, y;      // with the axes last
};

// The copy from x to its transposition, or back.
StridedCopy Transposition(const Shape& x, const std::vector<int>& order, size_t element,
                          bool forward) {
  const std::vector<int64_t> strides = ByteStrides(x, element);
  std::vector<CopyAxis> moves(order.size());
  auto packed = static_cast<int64_t>(element);
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t stride = strides[static_cast<size_t>(order[i])];
    const int64_t extent = x[order[i]];
    moves[i] = forward ? CopyAxis{extent, stride, packed} : CopyAxis{extent, packed, stride};
    packed *= extent;
  }
  return StridedCopy(moves, element);
}

SoftmaxPlan PlanSoftmax(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  check.Keep(ExpectType(op, "x", kFloatsAndDouble));
  const std::vector<int64_t> axes = op.attr_ints("axes");
  std::vector<bool> chosen(static_cast<size_t>(x.shape.rank()), false);
  if (!axes.empty()) chosen = check.Take(ChooseAxes(op, x, axes, "axes"));
  if (!check.ok()) return {};
  SoftmaxPlan plan;
  const bool widens = op.attr_bool("half_to_float") && x.dtype == DataType::kFloat16;
  plan.from = x.dtype;
  plan.to = widens ? DataType::kFloat : x.dtype;
  std::vector<int> order;  // dimensions of x, the normalised ones last
  for (const bool normalised : {false, true}) {
    for (int axis = 0; axis < x.shape.rank(); ++axis) {
      if (chosen[static_cast<size_t>(axis)] != normalised) continue;
      order.push_back(axis);
      (normalised ? plan.columns : plan.rows) *= x.shape[axis];
    }
  }
  plan.moved = !std::is_sorted(order.begin(), order.end());
  plan.parts = WorthThreadsForRows(plan.rows, x.shape.elements(), op.threads());
  plan.scratch.Take(plan.parts * plan.columns, {&plan.x_row, &plan.y_row});
  if (plan.moved) {
    const int64_t from_bytes = BitsOf(plan.from) / 8, to_bytes = BitsOf(plan.to) / 8;
    plan.gather = Transposition(x.shape, order, static_cast<size_t>(from_bytes), true);
    plan.scatter = Transposition(x.shape, order, static_cast<size_t>(to_bytes), false);
    plan.x = plan.scratch.Take<std::byte>(x.shape.elements() * from_bytes);
    plan.y = plan.scratch.Take<std::byte>(x.shape.elements() * to_bytes);
  }
  plan.outputs = {{plan.to, x.shape}};
  return plan;
}

void RunRow(const SoftmaxPlan& plan, const KernelArgs& args, int part, int64_t row, const void* x,
            void* y) {
  const int64_t n = plan.columns, first = row * n;
  if (plan.from == DataType::kDouble) {
    return SoftmaxOfDoubles(static_cast<const double*>(x) + first, n,
                            static_cast<double*>(y) + first);
  }
  float *x_row = plan.x_row(args) + part * n, *y_row = plan.y_row(args) + part * n;
  SoftmaxRow(LoadRow(plan.from, x, first, n, x_row), n, y_row);
  StoreRow(plan.to, y_row, y, first, n);
}

void RunRows(const SoftmaxPlan& plan, const KernelArgs& args, const void* x, void* y) {
  if (plan.columns == 0) return;
  RunRanges(plan.parts, plan.rows, 1, [&](int part, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) RunRow(plan, args, part, row, x, y);
  });
}

Status RunSoftmax(const SoftmaxPlan& plan, const KernelArgs& args) {
  if (!plan.moved) {
    RunRows(plan, args, args.in[0], args.out[0]);
    return Status();
  }
  plan.gather.Run(args.in[0], plan.x(args));
  RunRows(plan, args, plan.x(args), plan.y(args));
  plan.scatter.Run(plan.y(args), args.out[0]);
  return Status();
}

// Over the last axis alone.
void LoopSoftmax(const OpContext& op, LoopBuilder& loop) {
  const Shape& x = op.in("x").shape;
  const std::vector<int64_t> axes = op.attr_ints("axes");
  if (x.rank() == 0 || x.dims().back() != loop.columns() || axes.size() != 1) return;
  if (axes[0] != -1 && axes[0] != x.rank() - 1) return;
  const LoopValue row = loop.In(op.slot("x"));
  const LoopValue most = loop.Emit(LoopOp::kRowMax, {row});
  const LoopValue power =
      loop.Emit(LoopOp::kExpOfNonPositive, {loop.Emit(LoopOp::kSub, {row, most})});
  const LoopValue scale = loop.Emit(LoopOp::kReciprocalOf, {loop.Emit(LoopOp::kRowSum, {power})});
  loop.Give(loop.Emit(LoopOp::kMul, {power, scale}));
}

}  // namespace

void RegisterSoftmaxOps(OpRegistry& registry) {
  registry.Add(Define<PlanSoftmax, RunSoftmax>(
      "SoftmaxV2(x; axes=[-1], half_to_float=false) -> y",
      {.loop = LoopSoftmax, .axes = "x[.. a! ..] -> y[.. a ..]; a = axes"}));
}

}  // namespace npumesh
