// Transpose and Permute: dimension i of y is dimension perm[i] of x.
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/shape/family.h"
#include "graph/ops/shape/shape_plan.h"

namespace npumesh {
namespace {

// `what` is the port or attribute that lists every axis of x exactly once.
CopyPlan PlanPermutation(const OpContext& op, std::string_view what, Check& check) {
  CopyPlan plan = CopyOf(op, "x", check);
  const std::vector<int64_t> listed = check.Take(op.Ints(what));
  const TensorType& x = op.in("x");
  check.That(listed.size() == x.shape.dims().size(), "\"{}\" has {} entries, x is {}", what,
             listed.size(), x);
  const std::vector<int> axes = DistinctAxes(op, listed, x.shape.rank(), what, check);
  const std::vector<int64_t> steps = ByteStrides(x.shape, 1);
  std::vector<int64_t> dims;
  for (const int axis : axes) {
    dims.push_back(x.shape[axis]);
    plan.loops.push_back({x.shape[axis], steps[static_cast<size_t>(axis)]});
  }
  plan.outputs = {{x.dtype, Shape(std::move(dims))}};
  return plan;
}

CopyPlan PlanTranspose(const OpContext& op, Check& check) {
  return PlanPermutation(op, "perm", check);
}

CopyPlan PlanPermute(const OpContext& op, Check& check) {
  return PlanPermutation(op, "order", check);
}

}  // namespace

void RegisterTransposeOps(OpRegistry& registry) {
  Operator transpose = DefineCopy<PlanTranspose>("Transpose(x, perm) -> y", {"perm"});
  transpose.permutation = "perm";
  registry.Add(std::move(transpose));
  registry.Add(DefineCopy<PlanPermute>("Permute(x; order=[0]) -> y"));
}

}  // namespace npumesh
