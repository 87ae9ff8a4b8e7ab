// Transpose and Permute: dimension i of y is dimension perm[i] of x.
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/shape/family.h"
#include "graph/ops/shape/shape_plan.h"

namespace npumesh {
namespace {

// `listed` has every axis of x exactly once; `what` is its port or attribute.
Result<CopyPlan> PlanPermutation(const OpContext& op, const std::vector<int64_t>& listed,
                                 std::string_view what) {
  NPUMESH_ASSIGN_OR_RETURN(CopyPlan plan, CopyOf(op, "x"));
  const TensorType& x = op.in("x");
  if (listed.size() != static_cast<size_t>(x.shape.rank())) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" has {} entries, x is {}", op.Who(), what,
                 listed.size(), x.ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const auto axes, DistinctAxes(op, listed, x.shape.rank(), what));
  const std::vector<int64_t> steps = ByteStrides(x.shape, 1);
  std::vector<int64_t> dims;
  for (const int axis : axes) {
    dims.push_back(x.shape[axis]);
    plan.loops.push_back({x.shape[axis], steps[static_cast<size_t>(axis)]});
  }
  plan.outputs = {{x.dtype, Shape(std::move(dims))}};
  return plan;
}

Result<CopyPlan> PlanTranspose(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, op.Ints("perm"));
  return PlanPermutation(op, perm, "perm");
}

Result<CopyPlan> PlanPermute(const OpContext& op) {
  return PlanPermutation(op, op.attr_ints("order"), "order");
}

}  // namespace

void RegisterTransposeOps(OpRegistry& registry) {
  Operator transpose = DefineCopy<PlanTranspose>("Transpose(x, perm) -> y", {"perm"});
  transpose.permutation = "perm";
  registry.Add(std::move(transpose));
  registry.Add(DefineCopy<PlanPermute>("Permute(x; order=[0]) -> y"));
}

}  // namespace npumesh
