// The scatter operators: ScatterElements, ScatterNd*, TensorScatter*, Scatter* along dimension 0,
// InplaceIndexAdd, Scatter and UnsortedSegment*.
#include "graph/ops/core/op_registry.h"
#include "graph/ops/index/scatter.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// ---- ScatterElements ----

ScatterPlan PlanScatterElements(const OpContext& op, Check& check) {
  const Shape &data = op.in("data").shape, &indices = op.in("indices").shape;
  ScatterPlan plan;
  const int axis = check.Axis("axis", data.rank());
  if (!op.attr_string("reduction").empty()) {
    plan.join = check.Meaning<Join>("reduction", {{"none", Join::kSet},
                                                  {"add", Join::kAdd},
                                                  {"mul", Join::kMul},
                                                  {"max", Join::kMax},
                                                  {"min", Join::kMin}});
  }
  bool inside = indices.rank() == data.rank();
  for (int d = 0; inside && d < data.rank(); ++d) inside = d == axis || indices[d] <= data[d];
  check.That(inside, "\"indices\" is {}, which does not lie inside data {} outside of dimension {}",
             indices, data, axis);
  check.SameType("updates", "data");
  check.Shape("updates", indices);
  if (!check.ok()) return {};
  plan.rows = check.Take(RowsByElements(op, "indices", data, axis));
  plan.updates = op.slot("updates");
  plan.copied = op.slot("data");
  return Complete(op, std::move(plan), op.in("data"), check);
}

// ---- by tuples of indices, and along dimension 0 ----

enum class Addressing {
  kTuples,  // the last dimension of the indices is a position
  kFirst,   // every index is a position of dimension 0
};

// Inputs: what is updated, indices, updates. The operator works in place, or copies the first.
template <Join kJoin, Addressing kBy, bool kInPlace>
ScatterPlan PlanRows(const OpContext& op, Check& check) {
  const TensorType& var = op.in(0);
  const Shape& indices = op.in(1).shape;
  ScatterPlan plan;
  plan.join = kJoin;
  plan.updates = 2;
  if (!kInPlace) plan.copied = 0;
  check.SameType("updates", op.schema().inputs[0].name);
  if (kBy == Addressing::kTuples) {
    plan.rows = check.Take(RowsByTuples(op, "indices", var.shape, IndexRange::kStrict));
    if (check.ok()) check.Shape("updates", TupleRows(indices, var.shape));
  } else {
    check.That(var.shape.rank() > 0, "var is {}, which has no axis 0", var);
    if (!check.ok()) return {};
    plan.rows = check.Take(RowsAlongAxis(op, "indices", var.shape, 0, IndexRange::kStrict));
    check.Shape("updates", Spliced(var.shape, 0, 1, indices.dims()));
  }
  return Complete(op, std::move(plan), var, check);
}

// ---- ScatterNd: into zeros ----

ScatterPlan PlanScatterNd(const OpContext& op, Check& check) {
  const Shape y(check.Take(op.Ints("shape")));
  check.Keep(y.Check().WithContext(op.Who()));
  if (!check.ok()) return {};
  ScatterPlan plan;
  plan.join = Join::kAdd;
  plan.starts = true;
  plan.updates = op.slot("x");
  plan.rows = check.Take(RowsByTuples(op, "indices", y, IndexRange::kStrict));
  if (check.ok()) check.Shape("x", TupleRows(op.in("indices").shape, y));
  return Complete(op, std::move(plan), {op.in("x").dtype, y}, check);
}

// ---- InplaceIndexAdd ----

ScatterPlan PlanIndexAdd(const OpContext& op, Check& check) {
  const TensorType& var = op.in("var");
  ScatterPlan plan;
  plan.join = Join::kAdd;
  plan.updates = op.slot("updates");
  if (SlotIfFed(op, "alpha") >= 0) plan.scale = op.slot("alpha");
  const int axis = check.Axis("axis", var.shape.rank());
  check.SameType("updates", "var");
  check.SameType("alpha", "var");
  check.Elements("alpha", {1});
  if (!check.ok()) return {};
  Shape updates = var.shape;
  updates[axis] = op.in("indices").shape.elements();
  check.Shape("updates", updates);
  plan.rows = check.Take(RowsAlongAxis(op, "indices", var.shape, axis, IndexRange::kStrict));
  return Complete(op, std::move(plan), var, check);
}

// ---- UnsortedSegment* ----

template <Join kJoin>
ScatterPlan PlanSegment(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  const Shape& ids = op.in("segment_ids").shape;
  const int64_t segments = check.Take(op.Int("num_segments"));
  bool fits = ids.rank() >= 1 && ids.rank() <= x.shape.rank() && segments >= 0;
  for (int d = 0; fits && d < ids.rank(); ++d) fits = ids[d] == x.shape[d];
  check.That(fits,
             "x {} does not begin with the dimensions of segment_ids {}, or num_segments {} is "
             "negative",
             x.shape, ids, segments);
  if (!check.ok()) return {};
  Shape y = Spliced(x.shape, 0, ids.rank(), {segments});
  check.Keep(y.Check().WithContext(op.Who()));
  if (!check.ok()) return {};
  ScatterPlan plan;
  plan.join = kJoin;
  plan.starts = true;
  plan.updates = op.slot("x");
  plan.rows = check.Take(RowsAlongAxis(op, "segment_ids", y, 0, IndexRange::kDropsNegative));
  return Complete(op, std::move(plan), {x.dtype, std::move(y)}, check);
}

// ---- Scatter: a cache whose entry i is written at its own place along an axis ----

ScatterPlan PlanCacheWrite(const OpContext& op, Check& check) {
  const Shape &var = op.in("var").shape, &updates = op.in("updates").shape;
  const Shape& indices = op.in("indices").shape;
  const std::string reduce = op.attr_string("reduce");
  check.Supported(reduce == "update" || reduce == "none" || reduce.empty(),
                  "attribute \"reduce\" is \"{}\"; only update is known", reduce);
  const int axis = check.Axis("axis", var.rank());
  const bool pairs = indices.rank() == 2;  // (batch, start)
  bool fits = axis > 0 && updates.rank() == var.rank() && indices.rank() >= 1 &&
              indices.rank() <= 2 && (!pairs || indices[1] == 2);
  fits = fits && indices[0] == updates[0] && updates[0] <= var[0];
  for (int d = 1; fits && d < var.rank(); ++d) {
    fits = d == axis ? updates[d] <= var[d] : updates[d] == var[d];
  }
  check.That(fits, "updates {} with indices {} do not fit into var {} along axis {}", updates,
             indices, var, axis);
  check.Type("indices", kIndices);
  check.SameType("updates", "var");
  if (!check.ok()) return {};
  const int64_t heads = ElementsBetween(var, 1, axis);
  const int64_t length = updates[axis], bound = var[axis];
  ScatterPlan plan;
  plan.updates = op.slot("updates");
  plan.rows = {nullptr, updates[0] * heads * length, var[0] * heads * bound,
               ElementsBetween(var, axis + 1, var.rank())};
  const CachePlaces places = {Integers::OfSlot(op, op.slot("indices")), pairs, var[0], bound,
                              length};
  plan.rows.find = [=, who = op.Who(), entries = updates[0]](const KernelArgs& args,
                                                             int64_t* rows) -> Status {
    for (int64_t i = 0; i < entries; ++i) {
      NPUMESH_ASSIGN_OR_RETURN(const auto place, places.At(who, args, i));
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t first = (place.batch * heads + h) * bound + place.start;
        for (int64_t t = 0; t < length; ++t) *rows++ = first + t;
      }
    }
    return Status();
  };
  return Complete(op, std::move(plan), op.in("var"), check);
}

// ---- registration ----

template <auto PlanFn>
Operator Updating(std::string_view signature, Axes axes) {
  return Define<PlanFn, RunScatter>(signature, {.in_place = {{0, 0}}, .axes = std::move(axes)});
}

template <Join kJoin>
Operator ByTuples(std::string_view signature) {
  return Updating<PlanRows<kJoin, Addressing::kTuples, true>>(
      signature, "var[r..@indices ..], indices[i.. #r], updates[i..! ..] -> var[r.. ..]");
}

template <Join kJoin>
Operator ByFirst(std::string_view signature) {
  return Updating<PlanRows<kJoin, Addressing::kFirst, true>>(
      signature, "var[r@indices ..], indices[i..], updates[i..! ..] -> var[r ..]");
}

template <Join kJoin>
Operator OfTensor(std::string_view signature, Axes axes) {
  return Define<PlanRows<kJoin, Addressing::kTuples, false>, RunScatter>(signature,
                                                                         {.axes = std::move(axes)});
}

template <Join kJoin>
Operator Segment(std::string_view signature) {
  return Define<PlanSegment<kJoin>, RunScatter>(signature, {.value_inputs = {"num_segments"}});
}

}  // namespace

void RegisterScatterOps(OpRegistry& registry) {
  using enum Join;
  const auto add = [&](Operator op) { registry.Add(std::move(op)); };
  add(Define<PlanScatterElements, RunScatter>(
      "ScatterElements(data, indices, updates; axis=0, reduction=\"none\") -> y",
      {.axes = "data[..~ a@indices ..], indices[.. b! ..], updates[.. b ..] -> y[.. a ..]; "
               "a = axis"}));
  add(ByTuples<kSet>("ScatterNdUpdate(var, indices, updates; use_locking=false) -> var"));
  add(ByTuples<kAdd>("ScatterNdAdd(var, indices, updates; use_locking=false) -> var"));
  add(ByTuples<kSub>("ScatterNdSub(var, indices, updates; use_locking=false) -> var"));
  add(ByTuples<kMax>("ScatterNdMax(var, indices, updates; use_locking=false) -> var"));
  add(ByFirst<kSet>("ScatterUpdate(var, indices, updates; use_locking=false) -> var"));
  add(ByFirst<kAdd>("ScatterAdd(var, indices, updates; use_locking=false) -> var"));
  add(ByFirst<kSub>("ScatterSub(var, indices, updates; use_locking=false) -> var"));
  add(ByFirst<kMul>("ScatterMul(var, indices, updates; use_locking=false) -> var"));
  add(ByFirst<kDiv>("ScatterDiv(var, indices, updates; use_locking=false) -> var"));
  add(ByFirst<kMax>("ScatterMax(var, indices, updates; use_locking=false) -> var"));
  add(ByFirst<kMin>("ScatterMin(var, indices, updates; use_locking=false) -> var"));
  const Axes x_to_y = "x[r..@indices ..], indices[i.. #r], updates[i..! ..] -> y[r.. ..]";
  const Axes in_to_out =
      "input[r..@indices ..], indices[i.. #r], updates[i..! ..] -> output[r.. ..]";
  add(OfTensor<kSet>("TensorScatterUpdate(x, indices, updates) -> y", x_to_y));
  add(OfTensor<kAdd>("TensorScatterAdd(x, indices, updates) -> y", x_to_y));
  add(OfTensor<kSub>("TensorScatterSub(x, indices, updates) -> y", x_to_y));
  add(OfTensor<kMax>("TensorScatterMax(input, indices, updates) -> output", in_to_out));
  add(OfTensor<kMin>("TensorScatterMin(input, indices, updates) -> output", in_to_out));
  add(Define<PlanScatterNd, RunScatter>("ScatterNd(indices, x, shape) -> y",
                                        {.value_inputs = {"shape"}}));
  add(Updating<PlanIndexAdd>("InplaceIndexAdd(var, indices, updates, alpha?; axis:int) -> var",
                             "var[.. r@indices ..], indices[i], updates[.. i! ..] -> var[.. r ..]; "
                             "r = axis"));
  add(Updating<PlanCacheWrite>(
      "Scatter(var, indices, updates; reduce:string, axis=0) -> var",
      "var[b! .. r@indices ..], updates[u! .. i! ..] -> var[b .. r ..]; r = axis"));
  add(
      Segment<kAdd>("UnsortedSegmentSum(x, segment_ids, num_segments; is_preprocessed=false, "
                    "check_ids==false) -> y"));
  add(Segment<kMul>(
      "UnsortedSegmentProd(x, segment_ids, num_segments; is_preprocessed=false) -> y"));
  add(Segment<kMax>(
      "UnsortedSegmentMax(x, segment_ids, num_segments; is_preprocessed=false) -> y"));
  add(Segment<kMin>(
      "UnsortedSegmentMin(x, segment_ids, num_segments; is_preprocessed=false) -> y"));
}

}  // namespace npumesh
