// GatherNd and indexing with tensors: IndexByTensor, Index, IndexPutV2.
#include <cstring>
#include <optional>

#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/index/family.h"
#include "graph/ops/index/scatter.h"
#include "graph/ops/toolbox/copy/broadcast.h"

namespace npumesh {
namespace {

// Row i of the output is the i-th named row of x.
struct RowsPlan : Planned {
  IndexRows rows;
  int x = 0;       // slot
  size_t row = 0;  // bytes
  Workspace<int64_t> found;
};

RowsPlan RowsOf(const OpContext& op, IndexRows rows, Shape y, Check& check) {
  RowsPlan plan;
  plan.x = op.slot("x");
  const DataType dtype = op.in(plan.x).dtype;
  const size_t element = check.Take(ElementBytes(op, dtype));
  plan.row = element * static_cast<size_t>(rows.inner);
  plan.found = plan.scratch.Take<int64_t>(rows.count);
  plan.rows = std::move(rows);
  plan.outputs = {{dtype, std::move(y)}};
  return plan;
}

Status RunRows(const RowsPlan& plan, const KernelArgs& args) {
  int64_t* found = plan.found(args);
  NPUMESH_RETURN_IF_ERROR(plan.rows.find(args, found));
  const auto* x = static_cast<const std::byte*>(args.in[plan.x]);
  auto* y = static_cast<std::byte*>(args.out[0]);
  for (int64_t i = 0; i < plan.rows.count && plan.row > 0; ++i, y += plan.row) {
    std::memcpy(y, x + static_cast<size_t>(found[i]) * plan.row, plan.row);
  }
  return Status();
}

// ---- GatherNd ----

RowsPlan PlanGatherNd(const OpContext& op, Check& check) {
  const Shape &x = op.in("x").shape, &indices = op.in("indices").shape;
  check.Keep(CheckIndexType(op, op.slot("indices")));
  const bool wraps = op.attr_bool("negative_index_support");
  IndexRows rows =
      check.Take(RowsByTuples(op, "indices", x, wraps ? IndexRange::kWraps : IndexRange::kStrict));
  if (!check.ok()) return {};
  return RowsOf(op, std::move(rows), TupleRows(indices, x), check);
}

// ---- IndexByTensor, Index ----

// Which dimensions of x are indexed says an attribute or an input; without a mask in the attribute,
// as many leading ones as there are tensors.
template <bool kByAttribute>
RowsPlan PlanIndex(const OpContext& op, Check& check) {
  std::vector<int64_t> mask = check.Take(op.Ints(kByAttribute ? "indices_mask" : "indexed_sizes"));
  if (kByAttribute && mask.empty()) mask.assign(static_cast<size_t>(op.count("indices")), 1);
  Shape shape;
  IndexRows rows = check.Take(RowsByTensors(op, "indices", mask, op.in("x").shape, &shape));
  return RowsOf(op, std::move(rows), std::move(shape), check);
}

// ---- IndexPutV2: x[indices] = value, or += ----

// A scatter, which wants the value in the shape of x[indices]: it is repeated into `room` first.
struct PutPlan : ScatterPlan {
  std::optional<BroadcastPlan> broadcast;
  size_t count = 0;
  Workspace<std::byte> room;
};

PutPlan PlanPut(const OpContext& op, Check& check) {
  const TensorType &x = op.in("x"), &value = op.in("value");
  check.SameType("value", "x");
  Shape shape;
  ScatterPlan scatter;
  scatter.updates = op.slot("value");
  scatter.join = op.attr_bool("accumulate") ? Join::kAdd : Join::kSet;
  const std::vector<int64_t> mask = check.Take(op.Ints("indexed_sizes"));
  if (!check.ok()) return {};
  scatter.rows = check.Take(RowsByTensors(op, "indices", mask, x.shape, &shape));
  const Result<Shape> wider = Broadcast(shape, value.shape);
  check.That(wider.ok() && *wider == shape, "\"value\" is {}, which does not broadcast to {}",
             value, shape);
  if (!check.ok()) return {};
  PutPlan plan;
  const size_t element = check.Take(ElementBytes(op, x.dtype));
  static_cast<ScatterPlan&>(plan) = Complete(op, std::move(scatter), x, check);
  plan.broadcast.emplace(value.shape, shape, element);
  plan.count = static_cast<size_t>(shape.elements());
  if (!plan.broadcast->direct()) {
    plan.room = plan.scratch.Take<std::byte>(shape.elements() * static_cast<int64_t>(element));
  }
  return plan;
}

Status RunPut(const PutPlan& plan, const KernelArgs& args) {
  const void* value = args.in[plan.updates];
  if (plan.broadcast->direct() || plan.count == 0) return Scatter(plan, args, value);
  plan.broadcast->Gather(value, 0, plan.count, plan.room(args));
  return Scatter(plan, args, plan.room(args));
}

}  // namespace

void RegisterIndexOps(OpRegistry& registry) {
  registry.Add(
      Define<PlanGatherNd, RunRows>("GatherNd(x, indices; negative_index_support=false) -> y"));
  registry.Add(
      Define<PlanIndex<true>, RunRows>("IndexByTensor(x, indices...; indices_mask=[]) -> y"));
  registry.Add(
      Define<PlanIndex<false>, RunRows>("Index(x, indexed_sizes, indexed_strides, indices...) -> y",
                                        {.value_inputs = {"indexed_sizes"}}));
  registry.Add(
      Define<PlanPut, RunPut>("IndexPutV2(x, value, indexed_sizes, indexed_strides, indices...; "
                              "accumulate=false) -> x",
                              {.in_place = {{0, 0}}, .value_inputs = {"indexed_sizes"}}));
}

}  // namespace npumesh
