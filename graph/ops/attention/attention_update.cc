// AttentionUpdate: joins what ranks that share a sequence have computed of the same attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/attention/family.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// The lse of a part that has seen no key.
constexpr double kNothing = -std::numeric_limits<double>::infinity();

struct UpdatePlan : Planned {
  int parts = 0;
  int lse = 0;  // first slots
  int go = 0;
  DataType dtype = DataType::kUndefined;
  int64_t rows = 0, width = 0;
  Workspace<float> sum, row;
};

// Each lse is [rows], each go [rows, D]; the attribute sp counts both.
UpdatePlan PlanUpdate(const OpContext& op, Check& check) {
  UpdatePlan plan;
  plan.parts = op.count("lse");
  check.That(plan.parts > 0 && op.count("go") == plan.parts && op.attr_int("sp") == plan.parts,
             "{} tensors lse and {} go with sp {}, expected as many of each", plan.parts,
             op.count("go"), op.attr_int("sp"));
  if (!check.ok()) return plan;
  plan.lse = op.slot("lse");
  plan.go = op.slot("go");
  const TensorType &lse = op.in(plan.lse), &go = op.in(plan.go);
  check.Type("lse", DataType::kFloat);
  check.RankAtLeast("go", kFloats, 1);
  if (!check.ok()) return plan;
  plan.dtype = go.dtype;
  plan.rows = lse.shape.elements();
  plan.width = go.shape.dims().back();
  bool fits = ElementsBetween(go.shape, 0, go.shape.rank() - 1) == plan.rows;
  for (int i = 1; i < plan.parts; ++i) {
    fits = fits && op.in(plan.lse + i) == lse && op.in(plan.go + i) == go;
  }
  check.That(fits,
             "the first lse is {} and the first go {}, expected [rows], [rows,D] and the same"
             " types in all parts",
             lse, go);
  plan.outputs = {go, lse};
  plan.scratch.Take(plan.width, {&plan.sum, &plan.row});
  return plan;
}

double LseAt(const UpdatePlan& plan, const KernelArgs& args, int part, int64_t r) {
  return static_cast<double>(static_cast<const float*>(args.in[plan.lse + part])[r]);
}

double JoinedLse(const UpdatePlan& plan, const KernelArgs& args, int64_t r) {
  double most = kNothing;
  for (int i = 0; i < plan.parts; ++i) most = std::max(most, LseAt(plan, args, i, r));
  if (most == kNothing) return kNothing;
  double sum = 0;
  for (int i = 0; i < plan.parts; ++i) sum += std::exp(LseAt(plan, args, i, r) - most);
  return most + std::log(sum);
}

Status RunUpdate(const UpdatePlan& plan, const KernelArgs& args) {
  const int64_t width = plan.width;
  float *sum = plan.sum(args), *row = plan.row(args);
  for (int64_t r = 0; r < plan.rows; ++r) {
    const double joined = JoinedLse(plan, args, r);
    std::fill_n(sum, width, 0.0f);
    for (int i = 0; i < plan.parts; ++i) {
      const double lse = LseAt(plan, args, i, r);
      if (lse == kNothing) continue;
      const auto weight = static_cast<float>(std::exp(lse - joined));
      LoadNumbers(plan.dtype, args.in[plan.go + i], r * width, width, row);
      for (int64_t d = 0; d < width; ++d) sum[d] += weight * row[d];
    }
    StoreRow(plan.dtype, sum, args.out[0], r * width, width);
    static_cast<float*>(args.out[1])[r] = static_cast<float>(joined);
  }
  return Status();
}

}  // namespace

void RegisterAttentionUpdateOps(OpRegistry& registry) {
  registry.Add(Define<PlanUpdate, RunUpdate>(
      "AttentionUpdate(lse..., go...; update_type:int, sp:int) -> output, lse_m"));
}

}  // namespace npumesh
