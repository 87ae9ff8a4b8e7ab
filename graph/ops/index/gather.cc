// Gather, GatherV2, GatherElements and GatherNd; indexing with tensors: IndexByTensor, Index,
// IndexPutV2.
//
// An index outside of the dimension is a run-time error, because zeros read in silence would hide
// the fault that a simulator is there to show.
#include <algorithm>
#include <cstring>
#include <optional>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/index/scatter.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// ---- Gather, GatherV2 ----

// x, input 0, as [batch, outer, bound, row bytes], indices as [batch, count].
struct GatherPlan : Planned {
  IndexSlot indices;
  int64_t batch = 1, outer = 1, count = 0;
  size_t row = 0;
};

// Gather takes the first dimension after those that x and indices share, GatherV2 an input "axis".
template <bool kAxisInput>
GatherPlan PlanGather(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  const Shape& indices = op.in("indices").shape;
  const size_t element = check.Take(ElementBytes(op, x.dtype));
  check.Type("indices", kIndices);
  int64_t batch = op.attr_int("batch_dims");
  if (batch < 0) batch += indices.rank();
  const int64_t listed = kAxisInput ? check.Take(op.Int("axis")) : batch;
  const int axis = check.Take(AxisOf(op, listed, x.shape.rank(), "axis"));
  bool fits = batch >= 0 && batch <= indices.rank() && batch <= axis;
  const int shared = static_cast<int>(fits ? batch : 0);
  for (int i = 0; i < shared && check.ok(); ++i) fits = fits && x.shape[i] == indices[i];
  check.That(fits, "batch_dims {} does not fit x {} and indices {} along axis {}",
             op.attr_int("batch_dims"), x.shape, indices, axis);
  if (!check.ok()) return {};
  // select.int arrives as GatherV2 with a scalar index, which may count from the end.
  const bool wraps = op.attr_bool("negative_index_support") || (kAxisInput && indices.rank() == 0);
  GatherPlan plan;
  plan.indices = check.Take(IndexSlot::Of(op, "indices", x.shape[axis],
                                          wraps ? IndexRange::kWraps : IndexRange::kStrict));
  plan.batch = ElementsBetween(x.shape, 0, shared);
  plan.outer = ElementsBetween(x.shape, shared, axis);
  plan.count = ElementsBetween(indices, shared, indices.rank());
  plan.row = element * static_cast<size_t>(ElementsBetween(x.shape, axis + 1, x.shape.rank()));
  plan.outputs = {{x.dtype, Spliced(x.shape, axis, axis + 1, DimsFrom(indices, shared))}};
  return plan;
}

Status RunGather(const GatherPlan& plan, const KernelArgs& args) {
  const auto* table = static_cast<const std::byte*>(args.in[0]);
  const IndexSlot::Reader indices(plan.indices, args);
  const int64_t batch = plan.batch, outer = plan.outer, count = plan.count;
  const size_t row = plan.row;
  const size_t table_bytes = static_cast<size_t>(plan.indices.bound) * row;
  auto* y = static_cast<std::byte*>(args.out[0]);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t o = 0; o < outer; ++o, table += table_bytes) {
      for (int64_t i = b * count; i < (b + 1) * count; ++i, y += row) {
        const int64_t index = indices.At(i);
        if (index == kOutside) return plan.indices.OutsideError(args, i);
        CopyElement(table + static_cast<size_t>(index) * row, row, y);
      }
    }
  }
  return Status();
}

// ---- GatherElements ----

// Walks the positions of `index`, with the offset of the element of x that a 0 there would name.
struct ElementsPlan : Planned {
  IndexSlot index;
  int64_t count = 0;
  size_t element = 0;
  int64_t stride = 0;  // in x, of the dimension that is indexed
  PositionWalk walk;
  Workspace<int64_t> position;
};

ElementsPlan PlanGatherElements(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  const Shape& index = op.in("index").shape;
  ElementsPlan plan;
  plan.element = check.Take(ElementBytes(op, x.dtype));
  check.Type("index", kIndices);
  const int dim = check.Axis("dim", x.shape.rank());
  bool fits = index.rank() == x.shape.rank();
  for (int i = 0; fits && i < index.rank(); ++i) fits = i == dim || index[i] <= x.shape[i];
  check.That(fits, "\"index\" is {}, which does not lie inside x {} outside of dimension {}", index,
             x.shape, dim);
  if (!check.ok()) return {};
  std::vector<int64_t> strides = ByteStrides(x.shape, plan.element);
  plan.stride = std::exchange(strides[static_cast<size_t>(dim)], 0);
  plan.walk = PositionWalk(index, std::move(strides));
  plan.position = plan.scratch.Take<int64_t>(index.rank());
  plan.index = check.Take(IndexSlot::Of(op, "index", x.shape[dim]));
  plan.count = index.elements();
  plan.outputs = {{x.dtype, index}};
  return plan;
}

Status RunElements(const ElementsPlan& plan, const KernelArgs& args) {
  const auto* x = static_cast<const std::byte*>(args.in[0]);
  auto* y = static_cast<std::byte*>(args.out[0]);
  const IndexSlot::Reader indices(plan.index, args);
  int64_t* position = plan.position(args);
  std::fill_n(position, plan.walk.rank(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < plan.count; ++i, y += plan.element) {
    const int64_t index = indices.At(i);
    if (index == kOutside) return plan.index.OutsideError(args, i);
    CopyElement(x + offset + index * plan.stride, plan.element, y);
    offset = plan.walk.Next(position, offset);
  }
  return Status();
}

// ---- GatherNd, IndexByTensor, Index ----

// Row i of the output is the i-th named row of x.
struct RowsPlan : Planned {
  IndexRows rows;
  size_t row = 0;  // bytes
  Workspace<int64_t> found;
};

RowsPlan RowsOf(const OpContext& op, IndexRows rows, Shape y, Check& check) {
  const DataType dtype = op.in("x").dtype;
  RowsPlan plan;
  plan.row = check.Take(ElementBytes(op, dtype)) * static_cast<size_t>(rows.inner);
  plan.found = plan.scratch.Take<int64_t>(rows.count);
  plan.rows = std::move(rows);
  plan.outputs = {{dtype, std::move(y)}};
  return plan;
}

Status RunRows(const RowsPlan& plan, const KernelArgs& args) {
  int64_t* found = plan.found(args);
  NPUMESH_RETURN_IF_ERROR(plan.rows.find(args, found));
  const auto* x = static_cast<const std::byte*>(args.in[0]);
  auto* y = static_cast<std::byte*>(args.out[0]);
  for (int64_t i = 0; i < plan.rows.count && plan.row > 0; ++i, y += plan.row) {
    CopyElement(x + static_cast<size_t>(found[i]) * plan.row, plan.row, y);
  }
  return Status();
}

RowsPlan PlanGatherNd(const OpContext& op, Check& check) {
  const Shape &x = op.in("x").shape, &indices = op.in("indices").shape;
  check.Keep(CheckIndexType(op, op.slot("indices")));
  const bool wraps = op.attr_bool("negative_index_support");
  IndexRows rows =
      check.Take(RowsByTuples(op, "indices", x, wraps ? IndexRange::kWraps : IndexRange::kStrict));
  if (!check.ok()) return {};
  return RowsOf(op, std::move(rows), TupleRows(indices, x), check);
}

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

void RegisterGatherOps(OpRegistry& registry) {
  registry.Add(Define<PlanGather<false>, RunGather>(
      "Gather(x, indices; validate_indices=true, batch_dims=0, is_preprocessed=false, "
      "negative_index_support=false) -> y",
      {.axes = "x[r@indices ..], indices[i..] -> y[i.. ..]; batch_dims == 0"}));
  registry.Add(Define<PlanGather<true>, RunGather>(
      "GatherV2(x, indices, axis; batch_dims=0, is_preprocessed=false, "
      "negative_index_support=false) -> y",
      {.value_inputs = {"axis"},
       .axes = "x[.. r@indices ..], indices[i..] -> y[.. i.. ..]; r = axis, batch_dims == 0"}));
  registry.Add(Define<PlanGatherElements, RunElements>(
      "GatherElements(x, index; dim=0) -> y",
      {.axes = "x[..~ a@index ..], index[.. b ..] -> y[.. b ..]; a = dim"}));
}

void RegisterIndexOps(OpRegistry& registry) {
  registry.Add(
      Define<PlanGatherNd, RunRows>("GatherNd(x, indices; negative_index_support=false) -> y",
                                    {.axes = "x[r..@indices ..], indices[i.. #r] -> y[i.. ..]"}));
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
