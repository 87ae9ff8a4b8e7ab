#include "graph/ops/toolbox/product/scaled_matmul.h"

#include <algorithm>

#include "graph/ops/toolbox/product/product_plan.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh {
namespace {

struct ScaledPlan : ProductPlan {
  ScaledMatmul form;
  Dequant columns;  // all but the scale of the row
};

void StoreScaled(const ScaledPlan& plan, const KernelArgs& args, SumSegment segment) {
  const ScaledMatmul& form = plan.form;
  float* row = plan.results(args);
  if (segment.integers != nullptr) {  // the bias is added to floats, whatever its type is
    std::transform(segment.integers, segment.integers + segment.count, row,
                   [](int32_t sum) { return static_cast<float>(sum); });
    segment.integers = nullptr;
    segment.floats = row;
  }
  plan.columns.Apply(args, segment, plan.factors(args), row);
  const auto* scales = static_cast<const float*>(args.in[form.row_scale_slot]);
  ScaleRow(row, scales[form.scale_of_rows ? segment.row : 0], segment.count, row);
  StoreRow(form.y_dtype, row, args.out[0], segment.row * form.n + segment.first, segment.count);
}

Status RunScaled(const ScaledPlan& plan, const KernelArgs& args) {
  const ScaledMatmul& form = plan.form;
  const ThreadCount threads(plan.threads);
  return plan.product.Run(args, form.m, form.n, {form.x_dtype, args.in[form.x_slot]},
                          {form.w_dtype, args.in[form.w_slot], 0, form.transposed_w}, {},
                          [&](const SumSegment& segment) { StoreScaled(plan, args, segment); });
}

}  // namespace

std::unique_ptr<Kernel> MakeScaledMatmul(const ScaledMatmul& form) {
  ScaledPlan plan;
  plan.form = form;
  plan.columns.before = form.bias;
  plan.columns.scale = form.column_scale;
  plan.product = BlockedProduct(form.k, form.x_dtype == DataType::kInt8);
  plan.TakeRoom(form.threads, plan.product.scratch_bytes());
  return std::make_unique<define::PlannedKernel<ScaledPlan, RunScaled>>(std::move(plan));
}

Status ExpectEightBits(const OpContext& op, std::string_view x, std::string_view w) {
  const DataType a = op.in(x).dtype;
  const DataType b = op.in(w).dtype;
  const bool alone = a == DataType::kInt8 || a == DataType::kHifloat8;
  const bool float8 =
      kEightBitFloats.Contains(a) && kEightBitFloats.Contains(b) && b != DataType::kHifloat8;
  if (alone ? a == b : float8) return Status();
  return Error(Code::kUnsupported,
               "{}: {} is {} and {} {}; expected two of int8, of hifloat8 or of float8", op.Who(),
               x, Name(a), w, Name(b));
}

}  // namespace npumesh
