// Triu and Tril: one side of the diagonal of every matrix, zeros on the other.
#include <algorithm>
#include <cstring>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/shape/family.h"

namespace npumesh {
namespace {

struct TrianglePlan : Planned {
  int64_t matrices = 0, rows = 0, columns = 0;
  int64_t diagonal = 0;  // within [-rows, columns]
  size_t element = 0;
};

TrianglePlan PlanTriangle(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank();
  TrianglePlan plan;
  plan.element = check.Take(ElementBytes(op, x.dtype));
  check.That(rank >= 2, "x is {}, expected rank 2 or more", x);
  if (!check.ok()) return {};
  plan.matrices = ElementsBetween(x.shape, 0, rank - 2);
  plan.rows = x.shape[rank - 2];
  plan.columns = x.shape[rank - 1];
  plan.diagonal = std::clamp(op.attr_int("diagonal"), -plan.rows, plan.columns);
  plan.outputs = {x};
  return plan;
}

template <bool kUpper>
Status RunTriangle(const TrianglePlan& plan, const KernelArgs& args) {
  if (plan.matrices * plan.rows * plan.columns == 0) return Status();
  const size_t row_bytes = static_cast<size_t>(plan.columns) * plan.element;
  const auto* from = static_cast<const std::byte*>(args.in[0]);
  auto* to = static_cast<std::byte*>(args.out[0]);
  for (int64_t i = 0; i < plan.matrices * plan.rows; ++i, from += row_bytes, to += row_bytes) {
    // The first column of the upper triangle, or one past the lower one.
    const int64_t border =
        std::clamp(i % plan.rows + plan.diagonal + (kUpper ? 0 : 1), int64_t{0}, plan.columns);
    const size_t left = static_cast<size_t>(border) * plan.element;
    const size_t right = row_bytes - left;
    std::memcpy(kUpper ? to + left : to, kUpper ? from + left : from, kUpper ? right : left);
    std::memset(kUpper ? to : to + left, 0, kUpper ? left : right);
  }
  return Status();
}

}  // namespace

void RegisterTriangleOps(OpRegistry& registry) {
  registry.Add(Define<PlanTriangle, RunTriangle<true>>("Triu(x; diagonal=0) -> y"));
  registry.Add(Define<PlanTriangle, RunTriangle<false>>("Tril(x; diagonal=0) -> y"));
}

}  // namespace npumesh
