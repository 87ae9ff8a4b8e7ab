// ApplyTopKTopPWithSorted: which logits a sampler may draw. Of each row those below the k-th
// largest become -inf, and of the others the least likely whose probabilities sum up to at most 1 -
// p; the largest stays. What comes sorted ascending goes back to where it was.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

struct TopPlan : Planned {
  InputRows sorted;
  Integers places;  // of sorted values in their row
  Factors p;        // of each row; absent: 1
  Integers k;       // of each row; absent: all
  Workspace<float> row, probs, restored;
};

TopPlan PlanTop(const OpContext& op, Check& check) {
  TopPlan plan;
  check.Rank("sorted_value", kFloats, 2);
  check.Type("sorted_indices", kIndices);
  check.Shape("sorted_indices", op.in("sorted_value").shape);
  check.Type("p", kFloats);
  check.Type("k", kIndices);
  if (!check.ok()) return plan;
  plan.sorted = InputRows::Of(check, op, "sorted_value");
  check.That(plan.sorted.width > 0 || plan.sorted.count == 0, "sorted_value is {}, without logits",
             op.in("sorted_value"));
  for (const std::string_view port : {"p", "k"}) check.Elements(port, {plan.sorted.count});
  plan.places = Integers::OfSlot(op, op.slot("sorted_indices"));
  plan.p = check.Take(Factors::Of(op, "p"));
  plan.k = Integers::Of(op, "k");
  plan.outputs = {op.in("sorted_value")};
  plan.scratch.Take(plan.sorted.width, {&plan.row, &plan.probs, &plan.restored});
  return plan;
}

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Error: the row has not that many logits.
Status KeepTopK(const TopPlan& plan, const KernelArgs& args, int64_t r, float* row) {
  if (!plan.k.given()) return Status();
  const int64_t k = plan.k.At(args, r), n = plan.sorted.width;
  if (k < 1 || k > n) {
    return Error(Code::kInvalidArgument, "{}: k holds {} for row {}, expected 1 to {}", plan.who, k,
                 r, n);
  }
  const float least = row[n - k];
  for (int64_t i = 0; i < n; ++i) row[i] = row[i] < least ? kNever : row[i];
  return Status();
}

void KeepTopP(const TopPlan& plan, const KernelArgs& args, int64_t r, float* row) {
  if (!plan.p.given()) return;
  const int64_t n = plan.sorted.width;
  const float most = 1 - plan.p.At(args, r);
  float* const probs = plan.probs(args);
  SoftmaxRow(row, n, probs);
  double sum = 0;
  for (int64_t i = 0; i + 1 < n; ++i) {
    sum += static_cast<double>(probs[i]);
    if (static_cast<float>(sum) <= most) row[i] = kNever;
  }
}

Status RunTop(const TopPlan& plan, const KernelArgs& args) {
  const int64_t n = plan.sorted.width;
  float *row = plan.row(args), *restored = plan.restored(args);
  for (int64_t r = 0; r < plan.sorted.count; ++r) {
    plan.sorted.Load(args, r, row);
    NPUMESH_RETURN_IF_ERROR(KeepTopK(plan, args, r, row));
    KeepTopP(plan, args, r, row);
    std::fill_n(restored, n, kNever);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t place = plan.places.At(args, r * n + i);
      if (place < 0 || place >= n) {
        return Error(Code::kInvalidArgument,
                     "{}: sorted_indices hold {} in row {}, expected 0 to {}", plan.who, place, r,
                     n - 1);
      }
      restored[place] = row[i];
    }
    StoreRow(plan.sorted.dtype, restored, args.out[0], r * n, n);
  }
  return Status();
}

}  // namespace

void RegisterTopKTopPOps(OpRegistry& registry) {
  registry.Add(Define<PlanTop, RunTop>(
      "ApplyTopKTopPWithSorted(sorted_value, sorted_indices, p?, k?, logits?) -> out"));
}

}  // namespace npumesh
