// ScaledMaskedSoftmax and its gradient, and their second versions, which are the same:
//
//   y = softmax(x * scale, where the mask is true -10000)       over the last dimension
//
// The mask broadcasts to x. Rows are float32, the result is rounded once.
#include <algorithm>
#include <optional>

#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

constexpr float kMaskedScore = -10000.0f;

struct MaskedSoftmaxPlan : Planned {
  InputRows x, other;  // of the gradient: y_grad and y
  std::optional<BroadcastPlan> mask;
  int mask_slot = -1;
  float scale = 1;
  Workspace<float> row, other_row;
  Workspace<uint8_t> mask_row;
};

MaskedSoftmaxPlan PlanMasked(const OpContext& op, std::string_view x, Check& check) {
  MaskedSoftmaxPlan plan;
  check.RankBetween(x, kFloats, 1, BroadcastPlan::kMaxRank);
  check.Type("mask", DataType::kBool);
  if (!check.ok()) return plan;
  plan.x = InputRows::Of(check, op, x);
  plan.scale = op.attr_float("scale");
  plan.mask_slot = SlotIfFed(op, "mask");
  if (plan.mask_slot >= 0) {
    const Shape &from = op.in(plan.mask_slot).shape, &to = op.in(x).shape;
    bool fits = from.rank() <= to.rank();
    for (int i = 1; fits && i <= from.rank(); ++i) {
      const int64_t size = from[from.rank() - i];
      fits = size == 1 || size == to[to.rank() - i];
    }
    check.That(fits, "mask is {}, which does not broadcast to {}", op.in(plan.mask_slot), to);
    if (fits && to.elements() > 0) plan.mask.emplace(from, to, 1);
  }
  plan.scratch.Take(plan.x.width, {&plan.row, &plan.other_row});
  plan.mask_row = plan.scratch.Take<uint8_t>(plan.x.width);
  plan.outputs = {op.in(x)};
  return plan;
}

// The mask of a row; null: no mask.
const uint8_t* MaskRow(const MaskedSoftmaxPlan& plan, const KernelArgs& args, int64_t row) {
  if (!plan.mask) return nullptr;
  plan.mask->Gather(args.in[plan.mask_slot], row * plan.x.width, static_cast<size_t>(plan.x.width),
                    plan.mask_row(args));
  return plan.mask_row(args);
}

void ReplaceMasked(const uint8_t* mask, int64_t count, float value, float* row) {
  if (mask == nullptr) return;
  for (int64_t i = 0; i < count; ++i) row[i] = mask[i] != 0 ? value : row[i];
}

MaskedSoftmaxPlan PlanMaskedSoftmax(const OpContext& op, Check& check) {
  return PlanMasked(op, "x", check);
}

Status RunMaskedSoftmax(const MaskedSoftmaxPlan& plan, const KernelArgs& args) {
  const int64_t n = plan.x.width;
  float* const row = plan.row(args);
  if (n == 0) return Status();
  for (int64_t r = 0; r < plan.x.count; ++r) {
    plan.x.Load(args, r, row);
    ScaleRow(row, plan.scale, n, row);
    ReplaceMasked(MaskRow(plan, args, r), n, kMaskedScore, row);
    SoftmaxRow(row, n, row);
    StoreRow(plan.x.dtype, row, args.out[0], r * n, n);
  }
  return Status();
}

MaskedSoftmaxPlan PlanMaskedSoftmaxGrad(const OpContext& op, Check& check) {
  MaskedSoftmaxPlan plan = PlanMasked(op, "y_grad", check);
  check.SameTensor("y", "y_grad");
  plan.other = InputRows::Of(check, op, "y");
  return plan;
}

Status RunMaskedSoftmaxGrad(const MaskedSoftmaxPlan& plan, const KernelArgs& args) {
  const int64_t n = plan.x.width;
  float *dy = plan.row(args), *y = plan.other_row(args);
  for (int64_t r = 0; r < plan.x.count; ++r) {
    plan.x.Load(args, r, dy);
    plan.other.Load(args, r, y);
    const auto dot = static_cast<float>(SumOfProducts(dy, y, n));
    for (int64_t i = 0; i < n; ++i) dy[i] = (dy[i] - dot) * y[i] * plan.scale;
    ReplaceMasked(MaskRow(plan, args, r), n, 0.0f, dy);
    StoreRow(plan.x.dtype, dy, args.out[0], r * n, n);
  }
  return Status();
}

}  // namespace

void RegisterMaskedSoftmaxOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  registry.Add(Define<PlanMaskedSoftmax, RunMaskedSoftmax>(
      "ScaledMaskedSoftmax(x, mask?; scale=1.0, fixed_triu_mask==false) -> y"));
  registry.Add(Define<PlanMaskedSoftmax, RunMaskedSoftmax>(
      "ScaledMaskedSoftmaxV2(x, mask?; scale=1.0, fixed_triu_mask==false) -> y"));
  registry.Add(Define<PlanMaskedSoftmaxGrad, RunMaskedSoftmaxGrad>(
      "ScaledMaskedSoftmaxGrad(y_grad, y, mask?; scale=1.0, fixed_triu_mask==false) -> x_grad"));
  registry.Add(Define<PlanMaskedSoftmaxGrad, RunMaskedSoftmaxGrad>(
      "ScaledMaskedSoftmaxGradV2(y_grad, y, mask?; scale=1.0, fixed_triu_mask==false) -> x_grad"));
}

}  // namespace npumesh
