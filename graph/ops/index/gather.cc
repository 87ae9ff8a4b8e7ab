// Gather, GatherV2 and GatherElements.
//
// An index outside of the dimension is a run-time error, because zeros read in silence would hide
// the fault that a simulator is there to show.
#include <algorithm>
#include <cstring>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/index/family.h"
#include "graph/ops/toolbox/rows/index_rows.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// ---- Gather, GatherV2 ----

// x as [batch, outer, bound, row bytes], indices as [batch, count].
struct GatherPlan : Planned {
  IndexSlot indices;
  int x = 0;  // slot
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
  plan.x = op.slot("x");
  plan.indices = check.Take(IndexSlot::Of(op, "indices", x.shape[axis],
                                          wraps ? IndexRange::kWraps : IndexRange::kStrict));
  plan.batch = ElementsBetween(x.shape, 0, shared);
  plan.outer = ElementsBetween(x.shape, shared, axis);
  plan.count = ElementsBetween(indices, shared, indices.rank());
  plan.row = element * static_cast<size_t>(ElementsBetween(x.shape, axis + 1, x.shape.rank()));
  plan.outputs = {{x.dtype, Spliced(x.shape, axis, axis + 1, DimsFrom(indices, shared))}};
  return plan;
}

// Rows of one number are copied without a call.
void CopyRow(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else if (bytes == 2) {
    std::memcpy(to, from, 2);
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

Status RunGather(const GatherPlan& plan, const KernelArgs& args) {
  const auto* table = static_cast<const std::byte*>(args.in[plan.x]);
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
        CopyRow(y, table + static_cast<size_t>(index) * row, row);
      }
    }
  }
  return Status();
}

// ---- GatherElements ----

// Walks the positions of `index`, with the offset of the element of x that a 0 there would name.
struct ElementsPlan : Planned {
  IndexSlot index;
  int x = 0;  // slot
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
  plan.x = op.slot("x");
  plan.count = index.elements();
  plan.outputs = {{x.dtype, index}};
  return plan;
}

Status RunElements(const ElementsPlan& plan, const KernelArgs& args) {
  const auto* x = static_cast<const std::byte*>(args.in[plan.x]);
  auto* y = static_cast<std::byte*>(args.out[0]);
  const IndexSlot::Reader indices(plan.index, args);
  int64_t* position = plan.position(args);
  std::fill_n(position, plan.walk.rank(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < plan.count; ++i, y += plan.element) {
    const int64_t index = indices.At(i);
    if (index == kOutside) return plan.index.OutsideError(args, i);
    std::memcpy(y, x + offset + index * plan.stride, plan.element);
    offset = plan.walk.Next(position, offset);
  }
  return Status();
}

}  // namespace

void RegisterGatherOps(OpRegistry& registry) {
  registry.Add(Define<PlanGather<false>, RunGather>(
      "Gather(x, indices; validate_indices=true, batch_dims=0, is_preprocessed=false, "
      "negative_index_support=false) -> y"));
  registry.Add(Define<PlanGather<true>, RunGather>(
      "GatherV2(x, indices, axis; batch_dims=0, is_preprocessed=false, "
      "negative_index_support=false) -> y",
      {.value_inputs = {"axis"}}));
  registry.Add(Define<PlanGatherElements, RunElements>("GatherElements(x, index; dim=0) -> y"));
}

}  // namespace npumesh
