// BroadcastTo, Expand and Tile: elements of x, repeated.
#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/shape/family.h"
#include "graph/ops/shape/shape_plan.h"

namespace npumesh {
namespace {

// `shape` with 1s in front up to `rank`.
Shape Padded(const Shape& shape, int rank) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max(0, rank - shape.rank())), 1);
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return Shape(std::move(dims));
}

// BroadcastTo: -1 keeps the dimension of x. Expand: so does 1, and x may have the higher rank.
template <bool kExpand>
CopyPlan PlanBroadcast(const OpContext& op, Check& check) {
  CopyPlan plan = CopyOf(op, "x", check);
  const Shape wanted(check.Take(op.Ints("shape")));
  const TensorType& x = op.in("x");
  Shape y = wanted;
  if (kExpand) y = Padded(y, x.shape.rank());
  const Shape from = Padded(x.shape, y.rank());
  const std::vector<int64_t> steps = ByteStrides(from, 1);
  bool fits = from.rank() == y.rank();
  for (int i = 0; fits && i < y.rank(); ++i) {
    if (y[i] == -1 || (kExpand && y[i] == 1)) y[i] = from[i];
    fits = y[i] >= 0 && (from[i] == 1 || from[i] == y[i]);
    plan.loops.push_back({y[i], from[i] == 1 ? 0 : steps[static_cast<size_t>(i)]});
  }
  check.That(fits, "x is {} and cannot be broadcast to {}", x, wanted);
  plan.outputs = {{x.dtype, std::move(y)}};
  return plan;
}

// Each dimension becomes two loops: over the repetitions, and over the elements.
CopyPlan PlanTile(const OpContext& op, Check& check) {
  CopyPlan plan = CopyOf(op, "x", check);
  const Shape listed(check.Take(op.Ints("multiples")));
  const TensorType& x = op.in("x");
  const int rank = std::max(x.shape.rank(), listed.rank());
  const Shape from = Padded(x.shape, rank), multiples = Padded(listed, rank);
  const std::vector<int64_t> steps = ByteStrides(from, 1);
  Shape y = from;
  for (int i = 0; i < rank; ++i) {
    check.That(multiples[i] >= 0 && !__builtin_mul_overflow(y[i], multiples[i], &y[i]),
               "x is {} and cannot be repeated {} times", x, multiples);
    plan.loops.push_back({multiples[i], 0});
    plan.loops.push_back({from[i], steps[static_cast<size_t>(i)]});
  }
  plan.outputs = {{x.dtype, std::move(y)}};
  return plan;
}

}  // namespace

void RegisterBroadcastOps(OpRegistry& registry) {
  registry.Add(DefineCopy<PlanBroadcast<false>>("BroadcastTo(x, shape) -> y", {"shape"}));
  registry.Add(DefineCopy<PlanBroadcast<true>>("Expand(x, shape) -> y", {"shape"}));
  registry.Add(DefineCopy<PlanTile>("Tile(x, multiples) -> y", {"multiples"}));
}

}  // namespace npumesh
