// The scatter operators: ScatterElements, ScatterNd*, TensorScatter*, Scatter* along dimension 0,
// InplaceIndexAdd, Scatter and UnsortedSegment*.
#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/index/family.h"
#include "graph/ops/index/scatter.h"

namespace npumesh {
namespace {

// Dimensions of a, then those of b from `from` on.
Shape Joint(const Shape& a, int a_count, const Shape& b, int from) {
  std::vector<int64_t> dims(a.dims().begin(), a.dims().begin() + a_count);
  dims.insert(dims.end(), b.dims().begin() + from, b.dims().end());
  return Shape(std::move(dims));
}

// The shape of updates for tuples of indices into x. REQUIRES: RowsByTuples has accepted them.
Shape TupleUpdates(const Shape& indices, const Shape& x) {
  const int last = indices.rank() - 1;
  return Joint(indices, last, x, static_cast<int>(indices[last]));
}

// ---- ScatterElements ----

Result<Join> Reduction(const OpContext& op) {
  const std::string name = op.attr_string("reduction");
  if (name == "none" || name.empty()) return Join::kSet;
  if (name == "add") return Join::kAdd;
  if (name == "mul") return Join::kMul;
  return Error(Code::kInvalidArgument,
               "{}: attribute \"reduction\" is \"{}\"; expected none, add or mul", op.Who(), name);
}

Result<ScatterPlan> PlanScatterElements(const OpContext& op) {
  const Shape &data = op.in("data").shape, &indices = op.in("indices").shape;
  Check check(op);
  ScatterPlan plan;
  const int axis = check.Axis("axis", data.rank());
  plan.join = check.Take(Reduction(op));
  bool inside = indices.rank() == data.rank();
  for (int d = 0; inside && d < data.rank(); ++d) inside = d == axis || indices[d] <= data[d];
  check.That(inside, "\"indices\" is {}, which does not lie inside data {} outside of dimension {}",
             indices, data, axis);
  check.SameType("updates", "data");
  check.Shape("updates", indices);
  if (!check.ok()) return check.status();
  plan.rows = check.Take(RowsByElements(op, "indices", data, axis));
  plan.updates = op.slot("updates");
  plan.copied = op.slot("data");
  return Complete(check, op, std::move(plan), op.in("data"));
}

// ---- by tuples of indices, and along dimension 0 ----

enum class Addressing {
  kTuples,  // the last dimension of the indices is a position
  kFirst,   // every index is a position of dimension 0
};

// Inputs: what is updated, indices, updates. The operator works in place, or copies the first.
template <Join kJoin, Addressing kBy, bool kInPlace>
Result<ScatterPlan> PlanRows(const OpContext& op) {
  const TensorType& var = op.in(0);
  const Shape& indices = op.in(1).shape;
  Check check(op);
  ScatterPlan plan;
  plan.join = kJoin;
  plan.updates = 2;
  plan.copied = kInPlace ? -1 : 0;
  check.SameType("updates", op.schema().inputs[0].name);
  if (kBy == Addressing::kTuples) {
    plan.rows = check.Take(RowsByTuples(op, "indices", var.shape, IndexRange::kStrict));
    if (check.ok()) check.Shape("updates", TupleUpdates(indices, var.shape));
  } else {
    check.That(var.shape.rank() > 0, "var is {}, which has no axis 0", var);
    if (!check.ok()) return check.status();
    plan.rows = check.Take(RowsAlongAxis(op, "indices", var.shape, 0, IndexRange::kStrict));
    check.Shape("updates", Joint(indices, indices.rank(), var.shape, 1));
  }
  return Complete(check, op, std::move(plan), var);
}

// ---- ScatterNd: into zeros ----

Result<ScatterPlan> PlanScatterNd(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, op.Ints("shape"));
  const Shape y(std::move(dims));
  NPUMESH_RETURN_IF_ERROR(y.Check().WithContext(op.Who()));
  Check check(op);
  ScatterPlan plan;
  plan.join = Join::kAdd;
  plan.starts = true;
  plan.updates = op.slot("x");
  plan.rows = check.Take(RowsByTuples(op, "indices", y, IndexRange::kStrict));
  if (check.ok()) check.Shape("x", TupleUpdates(op.in("indices").shape, y));
  return Complete(check, op, std::move(plan), {op.in("x").dtype, y});
}

// ---- InplaceIndexAdd ----

Result<ScatterPlan> PlanIndexAdd(const OpContext& op) {
  const TensorType& var = op.in("var");
  Check check(op);
  ScatterPlan plan;
  plan.join = Join::kAdd;
  plan.updates = op.slot("updates");
  plan.scale = SlotIfFed(op, "alpha");
  const int axis = check.Axis("axis", var.shape.rank());
  check.SameType("updates", "var");
  check.SameType("alpha", "var");
  check.Elements("alpha", {1});
  if (!check.ok()) return check.status();
  Shape updates = var.shape;
  updates[axis] = op.in("indices").shape.elements();
  check.Shape("updates", updates);
  plan.rows = check.Take(RowsAlongAxis(op, "indices", var.shape, axis, IndexRange::kStrict));
  return Complete(check, op, std::move(plan), var);
}

// ---- UnsortedSegment* ----

template <Join kJoin>
Result<ScatterPlan> PlanSegment(const OpContext& op) {
  const TensorType& x = op.in("x");
  const Shape& ids = op.in("segment_ids").shape;
  Check check(op);
  const int64_t segments = check.Take(op.Int("num_segments"));
  bool fits = ids.rank() >= 1 && ids.rank() <= x.shape.rank() && segments >= 0;
  for (int d = 0; fits && d < ids.rank(); ++d) fits = ids[d] == x.shape[d];
  check.That(fits,
             "x {} does not begin with the dimensions of segment_ids {}, or num_segments {} is "
             "negative",
             x.shape, ids, segments);
  if (!check.ok()) return check.status();
  Shape y = Joint({segments}, 1, x.shape, ids.rank());
  NPUMESH_RETURN_IF_ERROR(y.Check().WithContext(op.Who()));
  ScatterPlan plan;
  plan.join = kJoin;
  plan.starts = true;
  plan.updates = op.slot("x");
  plan.rows = check.Take(RowsAlongAxis(op, "segment_ids", y, 0, IndexRange::kDropsNegative));
  return Complete(check, op, std::move(plan), {x.dtype, std::move(y)});
}

// ---- Scatter: a cache whose entry i is written at its own place along an axis ----

Result<ScatterPlan> PlanCacheWrite(const OpContext& op) {
  const Shape &var = op.in("var").shape, &updates = op.in("updates").shape;
  const Shape& indices = op.in("indices").shape;
  const std::string reduce = op.attr_string("reduce");
  if (reduce != "update" && reduce != "none" && !reduce.empty()) {
    return Error(Code::kUnsupported, "{}: attribute \"reduce\" is \"{}\"; only update is known",
                 op.Who(), reduce);
  }
  Check check(op);
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
  if (!check.ok()) return check.status();
  const int64_t heads = ElementsBetween(var, 1, axis);
  const int64_t length = updates[axis], bound = var[axis];
  ScatterPlan plan;
  plan.updates = op.slot("updates");
  plan.rows = {nullptr, updates[0] * heads * length, var[0] * heads * bound,
               ElementsBetween(var, axis + 1, var.rank())};
  plan.rows.find = [=, who = op.Who(), places = Integers::OfSlot(op, op.slot("indices")),
                    entries = updates[0],
                    batches = var[0]](const KernelArgs& args, int64_t* rows) -> Status {
    for (int64_t i = 0; i < entries; ++i) {
      const int64_t batch = pairs ? places.At(args, 2 * i) : i;
      const int64_t start = places.At(args, pairs ? 2 * i + 1 : i);
      if (batch < 0 || batch >= batches || start < 0 || start > bound - length) {
        return Error(Code::kInvalidArgument,
                     "{}: \"indices\" place entry {} at batch {}, positions {} to {}, expected "
                     "batches below {} and positions below {}",
                     who, i, batch, start, start + length - 1, batches, bound);
      }
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < length; ++t) {
          *rows++ = (batch * heads + h) * bound + start + t;
        }
      }
    }
    return Status();
  };
  return Complete(check, op, std::move(plan), op.in("var"));
}

// ---- registration ----

template <auto PlanFn>
Operator Updating(std::string_view signature) {
  return Define<PlanFn, RunScatter>(signature, {.in_place = {{0, 0}}});
}

template <Join kJoin>
Operator ByTuples(std::string_view signature) {
  return Updating<PlanRows<kJoin, Addressing::kTuples, true>>(signature);
}

template <Join kJoin>
Operator ByFirst(std::string_view signature) {
  return Updating<PlanRows<kJoin, Addressing::kFirst, true>>(signature);
}

template <Join kJoin>
Operator OfTensor(std::string_view signature) {
  return Define<PlanRows<kJoin, Addressing::kTuples, false>, RunScatter>(signature);
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
      "ScatterElements(data, indices, updates; axis=0, reduction=\"none\") -> y"));
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
  add(OfTensor<kSet>("TensorScatterUpdate(x, indices, updates) -> y"));
  add(OfTensor<kAdd>("TensorScatterAdd(x, indices, updates) -> y"));
  add(OfTensor<kSub>("TensorScatterSub(x, indices, updates) -> y"));
  add(OfTensor<kMax>("TensorScatterMax(input, indices, updates) -> output"));
  add(OfTensor<kMin>("TensorScatterMin(input, indices, updates) -> output"));
  add(Define<PlanScatterNd, RunScatter>("ScatterNd(indices, x, shape) -> y",
                                        {.value_inputs = {"shape"}}));
  add(Updating<PlanIndexAdd>("InplaceIndexAdd(var, indices, updates, alpha?; axis:int) -> var"));
  add(Updating<PlanCacheWrite>("Scatter(var, indices, updates; reduce:string, axis=0) -> var"));
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
