// The scatter operators: ScatterElements, ScatterNd*, TensorScatter*, Scatter* along dimension 0,
// InplaceIndexAdd, Scatter and UnsortedSegment*. Ops reference 5.10.
#include <algorithm>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/scatter.h"

namespace npumesh {
namespace {

Status ExpectShape(const OpContext& op, std::string_view port, const Shape& expected) {
  if (op.in(port).shape == expected) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected the shape {}", op.Who(), port,
               op.in(port).ToString(), expected.ToString());
}

// Dimensions of a, then those of b from `from` on.
Shape Joint(const Shape& a, int a_count, const Shape& b, int from) {
  std::vector<int64_t> dims(a.dims().begin(), a.dims().begin() + a_count);
  dims.insert(dims.end(), b.dims().begin() + from, b.dims().end());
  return Shape(std::move(dims));
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

Result<ScatterPlan> PlanElements(const OpContext& op) {
  const Shape& data = op.in("data").shape;
  const Shape& indices = op.in("indices").shape;
  ScatterPlan plan;
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("axis"), data.rank(), "axis"));
  NPUMESH_ASSIGN_OR_RETURN(plan.join, Reduction(op));
  bool inside = indices.rank() == data.rank();
  for (int d = 0; inside && d < data.rank(); ++d) inside = d == axis || indices[d] <= data[d];
  if (!inside) {
    return Error(Code::kInvalidArgument,
                 "{}: \"indices\" is {}, which does not lie inside data {} outside of dimension {}",
                 op.Who(), indices.ToString(), data.ToString(), axis);
  }
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("data"), op.slot("updates")));
  NPUMESH_RETURN_IF_ERROR(ExpectShape(op, "updates", indices));
  NPUMESH_ASSIGN_OR_RETURN(plan.rows, RowsByElements(op, "indices", data, axis));
  plan.updates = op.slot("updates");
  plan.copied = op.slot("data");
  return plan;
}

// ---- by tuples of indices, and along dimension 0 ----

enum class Addressing {
  kTuples,  // the last dimension of the indices is a position
  kFirst,   // every index is a position of dimension 0
};

struct ScatterRow {
  std::string_view type;
  Join join;
  Addressing addressing;
  bool in_place;
  std::string_view var = "var";
  std::string_view output = "var";
};

constexpr ScatterRow kRows[] = {
    {"ScatterNdUpdate", Join::kSet, Addressing::kTuples, true},
    {"ScatterNdAdd", Join::kAdd, Addressing::kTuples, true},
    {"ScatterNdSub", Join::kSub, Addressing::kTuples, true},
    {"ScatterNdMax", Join::kMax, Addressing::kTuples, true},
    {"TensorScatterUpdate", Join::kSet, Addressing::kTuples, false, "x", "y"},
    {"TensorScatterAdd", Join::kAdd, Addressing::kTuples, false, "x", "y"},
    {"TensorScatterSub", Join::kSub, Addressing::kTuples, false, "x", "y"},
    {"TensorScatterMax", Join::kMax, Addressing::kTuples, false, "input", "output"},
    {"TensorScatterMin", Join::kMin, Addressing::kTuples, false, "input", "output"},
    {"ScatterUpdate", Join::kSet, Addressing::kFirst, true},
    {"ScatterAdd", Join::kAdd, Addressing::kFirst, true},
    {"ScatterSub", Join::kSub, Addressing::kFirst, true},
    {"ScatterMul", Join::kMul, Addressing::kFirst, true},
    {"ScatterDiv", Join::kDiv, Addressing::kFirst, true},
    {"ScatterMax", Join::kMax, Addressing::kFirst, true},
    {"ScatterMin", Join::kMin, Addressing::kFirst, true},
};

Result<ScatterPlan> PlanRow(const OpContext& op, const ScatterRow& row) {
  const Shape& var = op.in(row.var).shape;
  const Shape& indices = op.in("indices").shape;
  ScatterPlan plan;
  plan.join = row.join;
  plan.updates = op.slot("updates");
  plan.copied = row.in_place ? -1 : op.slot(row.var);
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot(row.var), plan.updates));
  if (row.addressing == Addressing::kTuples) {
    NPUMESH_ASSIGN_OR_RETURN(plan.rows, RowsByTuples(op, "indices", var, IndexRange::kStrict));
    const int depth = static_cast<int>(indices[indices.rank() - 1]);
    NPUMESH_RETURN_IF_ERROR(
        ExpectShape(op, "updates", Joint(indices, indices.rank() - 1, var, depth)));
    return plan;
  }
  NPUMESH_RETURN_IF_ERROR(AxisOf(op, 0, var.rank(), row.var).status());
  NPUMESH_ASSIGN_OR_RETURN(plan.rows, RowsAlongAxis(op, "indices", var, 0, IndexRange::kStrict));
  NPUMESH_RETURN_IF_ERROR(ExpectShape(op, "updates", Joint(indices, indices.rank(), var, 1)));
  return plan;
}

// ---- ScatterNd: into zeros ----

Result<ScatterPlan> PlanScatterNd(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, op.Ints("shape"));
  const Shape y(std::move(dims));
  NPUMESH_RETURN_IF_ERROR(y.Check().WithContext(op.Who()));
  const Shape& indices = op.in("indices").shape;
  ScatterPlan plan;
  plan.join = Join::kAdd;
  plan.starts = true;
  plan.updates = op.slot("x");
  NPUMESH_ASSIGN_OR_RETURN(plan.rows, RowsByTuples(op, "indices", y, IndexRange::kStrict));
  const int depth = static_cast<int>(indices[indices.rank() - 1]);
  NPUMESH_RETURN_IF_ERROR(ExpectShape(op, "x", Joint(indices, indices.rank() - 1, y, depth)));
  return plan;
}

Status InferScatterNd(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanScatterNd(op).status());
  NPUMESH_RETURN_IF_ERROR(CheckJoin(op, op.in("x").dtype, Join::kAdd));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, op.Ints("shape"));
  return SetOutput(op, 0, op.in("x").dtype, Shape(std::move(dims)));
}

// ---- InplaceIndexAdd ----

Result<ScatterPlan> PlanIndexAdd(const OpContext& op) {
  const Shape& var = op.in("var").shape;
  ScatterPlan plan;
  plan.join = Join::kAdd;
  plan.updates = op.slot("updates");
  plan.scale = op.has("alpha") ? op.slot("alpha") : -1;
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("axis"), var.rank(), "axis"));
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("var"), plan.updates));
  if (plan.scale >= 0) {
    NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("var"), plan.scale));
    if (op.in(plan.scale).shape.elements() != 1) {
      return Error(Code::kInvalidArgument, "{}: \"alpha\" is {}, expected one element", op.Who(),
                   op.in(plan.scale).ToString());
    }
  }
  Shape updates = var;
  updates[axis] = op.in("indices").shape.elements();
  NPUMESH_RETURN_IF_ERROR(ExpectShape(op, "updates", updates));
  NPUMESH_ASSIGN_OR_RETURN(plan.rows, RowsAlongAxis(op, "indices", var, axis, IndexRange::kStrict));
  return plan;
}

// ---- UnsortedSegment* ----

Result<Shape> SegmentShape(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  const Shape& ids = op.in("segment_ids").shape;
  NPUMESH_ASSIGN_OR_RETURN(const int64_t segments, op.Int("num_segments"));
  bool fits = ids.rank() >= 1 && ids.rank() <= x.rank() && segments >= 0;
  for (int d = 0; fits && d < ids.rank(); ++d) fits = ids[d] == x[d];
  if (fits) return Joint({segments}, 1, x, ids.rank());
  return Error(Code::kInvalidArgument,
               "{}: x {} does not begin with the dimensions of segment_ids {}, or num_segments {} "
               "is negative",
               op.Who(), x.ToString(), ids.ToString(), segments);
}

Status InferSegment(OpContext& op, Join join) {
  NPUMESH_ASSIGN_OR_RETURN(Shape y, SegmentShape(op));
  NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, op.slot("segment_ids")));
  NPUMESH_RETURN_IF_ERROR(CheckJoin(op, op.in("x").dtype, join));
  return SetOutput(op, 0, op.in("x").dtype, std::move(y));
}

Result<ScatterPlan> PlanSegment(const OpContext& op, Join join) {
  ScatterPlan plan;
  plan.join = join;
  plan.starts = true;
  plan.updates = op.slot("x");
  NPUMESH_ASSIGN_OR_RETURN(
      plan.rows, RowsAlongAxis(op, "segment_ids", op.out(0).shape, 0, IndexRange::kDropsNegative));
  return plan;
}

// ---- Scatter: a cache whose entry i is written at its own place along an axis ----

struct CacheWrite {
  int axis = 0;
  bool pairs = false;  // indices are (batch, start)
};

Result<CacheWrite> CacheWriteOf(const OpContext& op) {
  const Shape& var = op.in("var").shape;
  const Shape& updates = op.in("updates").shape;
  const Shape& indices = op.in("indices").shape;
  const std::string reduce = op.attr_string("reduce");
  if (reduce != "update" && reduce != "none" && !reduce.empty()) {
    return Error(Code::kUnsupported, "{}: attribute \"reduce\" is \"{}\"; only update is known",
                 op.Who(), reduce);
  }
  CacheWrite write;
  NPUMESH_ASSIGN_OR_RETURN(write.axis, AxisOf(op, op.attr_int("axis"), var.rank(), "axis"));
  write.pairs = indices.rank() == 2;
  bool fits = write.axis > 0 && updates.rank() == var.rank() && indices.rank() >= 1 &&
              indices.rank() <= 2 && (!write.pairs || indices[1] == 2);
  fits = fits && indices[0] == updates[0] && updates[0] <= var[0];
  for (int d = 1; fits && d < var.rank(); ++d) {
    fits = d == write.axis ? updates[d] <= var[d] : updates[d] == var[d];
  }
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: updates {} with indices {} do not fit into var {} along axis {}", op.Who(),
                 updates.ToString(), indices.ToString(), var.ToString(), write.axis);
  }
  NPUMESH_RETURN_IF_ERROR(CheckIndexType(op, op.slot("indices")));
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("var"), op.slot("updates")));
  return write;
}

int64_t ReadIndex(const void* data, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
}

Result<ScatterPlan> PlanCacheWrite(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const CacheWrite write, CacheWriteOf(op));
  const Shape& var = op.in("var").shape;
  const Shape& updates = op.in("updates").shape;
  const int64_t heads = ElementsBetween(var, 1, write.axis);
  const int64_t length = updates[write.axis], bound = var[write.axis];
  ScatterPlan plan;
  plan.updates = op.slot("updates");
  plan.rows = {nullptr, updates[0] * heads * length, var[0] * heads * bound,
               ElementsBetween(var, write.axis + 1, var.rank())};
  const int slot = op.slot("indices");
  const bool wide = op.in(slot).dtype == DataType::kInt64;
  plan.rows.find = [=, who = op.Who(), entries = updates[0], batches = var[0], pairs = write.pairs](
                       const KernelArgs& args, int64_t* rows) -> Status {
    for (int64_t i = 0; i < entries; ++i) {
      const int64_t batch = pairs ? ReadIndex(args.in[slot], wide, 2 * i) : i;
      const int64_t start = ReadIndex(args.in[slot], wide, pairs ? 2 * i + 1 : i);
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
  return plan;
}

// ---- registration ----

// An operator that is planned alike for inference and kernel; output 0 is like slot `like`.
template <typename Plan>
Operator Planned(OpSchema schema, std::string_view like, Plan plan) {
  Operator op;
  op.schema = std::move(schema);
  op.infer = [plan, like](OpContext& context) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const ScatterPlan made, plan(context));
    const TensorType& type = context.in(like);
    NPUMESH_RETURN_IF_ERROR(CheckJoin(context, type.dtype, made.join));
    return SetOutput(context, 0, type.dtype, type.shape);
  };
  op.make_kernel = [plan](const OpContext& context) -> Result<std::unique_ptr<Kernel>> {
    NPUMESH_ASSIGN_OR_RETURN(ScatterPlan made, plan(context));
    return MakeScatter(context, std::move(made));
  };
  return op;
}

void RegisterRows(OpRegistry& registry) {
  for (const ScatterRow& row : kRows) {
    OpSchema schema = {row.type, {{row.var}, {"indices"}, {"updates"}}, {{row.output}}, {}};
    if (row.in_place) schema.attrs = {{"use_locking", AttrValue::Bool(false)}};
    Operator op = Planned(std::move(schema), row.var,
                          [&row](const OpContext& context) { return PlanRow(context, row); });
    if (row.in_place) op.in_place = {{0, 0}};
    registry.Add(std::move(op));
  }
}

void RegisterSegments(OpRegistry& registry) {
  const std::pair<std::string_view, Join> segments[] = {{"UnsortedSegmentSum", Join::kAdd},
                                                        {"UnsortedSegmentProd", Join::kMul},
                                                        {"UnsortedSegmentMax", Join::kMax},
                                                        {"UnsortedSegmentMin", Join::kMin}};
  for (const auto& [type, join] : segments) {
    Operator op;
    op.schema = {type,
                 {{"x"}, {"segment_ids"}, {"num_segments"}},
                 {{"y"}},
                 {{"is_preprocessed", AttrValue::Bool(false)}}};
    if (join == Join::kAdd) {
      op.schema.attrs.push_back(AttrSpec::Only("check_ids", AttrValue::Bool(false)));
    }
    op.value_inputs = {"num_segments"};
    op.infer = [join = join](OpContext& context) { return InferSegment(context, join); };
    op.make_kernel = [join = join](const OpContext& context) -> Result<std::unique_ptr<Kernel>> {
      NPUMESH_ASSIGN_OR_RETURN(ScatterPlan plan, PlanSegment(context, join));
      return MakeScatter(context, std::move(plan));
    };
    registry.Add(std::move(op));
  }
}

}  // namespace

void RegisterScatterOps(OpRegistry& registry) {
  registry.Add(Planned({"ScatterElements",
                        {{"data"}, {"indices"}, {"updates"}},
                        {{"y"}},
                        {{"axis", AttrValue::Int(0)}, {"reduction", AttrValue::String("none")}}},
                       "data", PlanElements));
  RegisterRows(registry);
  registry.Add({.schema = {"ScatterNd", {{"indices"}, {"x"}, {"shape"}}, {{"y"}}, {}},
                .infer = InferScatterNd,
                .make_kernel = [](const OpContext& op) -> Result<std::unique_ptr<Kernel>> {
                  NPUMESH_ASSIGN_OR_RETURN(ScatterPlan plan, PlanScatterNd(op));
                  return MakeScatter(op, std::move(plan));
                },
                .value_inputs = {"shape"}});
  Operator add = Planned({"InplaceIndexAdd",
                          {{"var"}, {"indices"}, {"updates"}, {"alpha", PortKind::kOptional}},
                          {{"var"}},
                          {{"axis", Required::kInt}}},
                         "var", PlanIndexAdd);
  add.in_place = {{0, 0}};
  registry.Add(std::move(add));
  RegisterSegments(registry);
  Operator cache = Planned({"Scatter",
                            {{"var"}, {"indices"}, {"updates"}},
                            {{"var"}},
                            {{"reduce", Required::kString}, {"axis", AttrValue::Int(0)}}},
                           "var", PlanCacheWrite);
  cache.in_place = {{0, 0}};
  registry.Add(std::move(cache));
}

}  // namespace npumesh
