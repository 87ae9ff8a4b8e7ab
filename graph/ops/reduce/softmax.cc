// SoftmaxV2: exp(x - max) / sum over the axes.
//
// Rows are computed in float32 by the loop program, doubles by the C library, and rounded once.
// Axes that are not the last ones are first brought to the end by a transposition into scratch.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/copy/strided_copy.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/row_machine.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

struct SoftmaxPlan : Planned {
  DataType from = DataType::kFloat;
  int64_t rows = 1, columns = 1;
  int threads = 1;
  std::vector<int> order;  // dimensions of x, the normalised ones last
};

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
  plan.threads = op.threads();
  for (const bool normalised : {false, true}) {
    for (int axis = 0; axis < x.shape.rank(); ++axis) {
      if (chosen[static_cast<size_t>(axis)] != normalised) continue;
      plan.order.push_back(axis);
      (normalised ? plan.columns : plan.rows) *= x.shape[axis];
    }
  }
  plan.outputs = {{widens ? DataType::kFloat : x.dtype, x.shape}};
  return plan;
}

// ---- rows along the last axes ----

void SoftmaxOfDoubles(const double* x, int64_t count, double* y) {
  const double most = *std::max_element(x, x + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    y[i] = std::exp(x[i] - most);
    sum += y[i];
  }
  for (int64_t i = 0; i < count; ++i) y[i] /= sum;
}

Status RunDoubles(const SoftmaxPlan& plan, const KernelArgs& args) {
  const int64_t n = plan.columns;
  if (n == 0) return Status();
  const auto* const x = static_cast<const double*>(args.in[0]);
  auto* const y = static_cast<double*>(args.out[0]);
  const int parts = WorthThreadsForRows(plan.rows, plan.rows * n, plan.threads);
  RunRanges(parts, plan.rows, 1, [&](int /*part*/, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) SoftmaxOfDoubles(x + row * n, n, y + row * n);
  });
  return Status();
}

void WriteSoftmax(LoopBuilder& loop, LoopValue row) {
  const LoopValue most = loop.Emit(LoopOp::kRowMax, {row});
  const LoopValue power =
      loop.Emit(LoopOp::kExpOfNonPositive, {loop.Emit(LoopOp::kSub, {row, most})});
  const LoopValue scale = loop.Emit(LoopOp::kReciprocalOf, {loop.Emit(LoopOp::kRowSum, {power})});
  loop.Give(loop.Emit(LoopOp::kMul, {power, scale}));
}

Result<std::unique_ptr<Kernel>> MakeRows(const OpContext& op, const SoftmaxPlan& plan) {
  if (plan.from == DataType::kDouble) {
    return std::unique_ptr<Kernel>(
        std::make_unique<define::PlannedKernel<SoftmaxPlan, RunDoubles>>(plan));
  }
  const Shape space({plan.rows, plan.columns});
  const LoopFn write = [&](const OpContext& context, LoopBuilder& loop) {
    WriteSoftmax(loop, loop.In(context.slot("x"), space));
  };
  return MakeRowKernel(op, write, space);
}

// ---- other axes ----

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

// A kernel on the rows of a transposition.
class MovedRows final : public Kernel {
 public:
  MovedRows(const TensorType& x, const TensorType& y, const std::vector<int>& order,
            std::unique_ptr<Kernel> rows)
      : gather_(Transposition(x.shape, order, WidthOf(x.dtype), true)),
        scatter_(Transposition(y.shape, order, WidthOf(y.dtype), false)),
        rows_(std::move(rows)) {
    of_rows_ = scratch_.Take<std::byte>(static_cast<int64_t>(rows_->scratch_bytes()));
    x_ = scratch_.Take<std::byte>(static_cast<int64_t>(x.bytes()));
    y_ = scratch_.Take<std::byte>(static_cast<int64_t>(y.bytes()));
  }

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }

  Status Run(const KernelArgs& args) override {
    const void* const in[] = {x_(args)};
    void* const out[] = {y_(args)};
    gather_.Run(args.in[0], x_(args));
    NPUMESH_RETURN_IF_ERROR(rows_->Run({in, out, of_rows_(args)}));
    scatter_.Run(y_(args), args.out[0]);
    return Status();
  }

 private:
  const StridedCopy gather_, scatter_;
  const std::unique_ptr<Kernel> rows_;
  Scratch scratch_;
  Workspace<std::byte> of_rows_, x_, y_;
};

Result<std::unique_ptr<Kernel>> MakeSoftmax(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const SoftmaxPlan plan, define::PlanCall<PlanSoftmax>(op));
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> rows, MakeRows(op, plan));
  if (std::is_sorted(plan.order.begin(), plan.order.end())) return rows;
  return std::unique_ptr<Kernel>(
      std::make_unique<MovedRows>(op.in("x"), plan.outputs[0], plan.order, std::move(rows)));
}

// Over the last axis alone.
void LoopSoftmax(const OpContext& op, LoopBuilder& loop) {
  const Shape& x = op.in("x").shape;
  const std::vector<int64_t> axes = op.attr_ints("axes");
  if (x.rank() == 0 || x.dims().back() != loop.columns() || axes.size() != 1) return;
  if (axes[0] != -1 && axes[0] != x.rank() - 1) return;
  WriteSoftmax(loop, loop.In(op.slot("x")));
}

}  // namespace

void RegisterSoftmaxOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  Operator op = {.loop = LoopSoftmax, .axes = "x[.. a! ..] -> y[.. a ..]; a = axes"};
  op.schema = Signature("SoftmaxV2(x; axes=[-1], half_to_float=false) -> y");
  op.infer = define::Infer<PlanSoftmax>;
  op.make_kernel = MakeSoftmax;
  registry.Add(std::move(op));
}

}  // namespace npumesh
