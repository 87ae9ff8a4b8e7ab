// Sorting, the largest and smallest elements, and running sums. Ops reference 5.5.
//
// NaN counts as larger than every number when elements are put in order. Equal elements keep their
// order; of several largest or smallest elements the first is taken.
#include <algorithm>
#include <numeric>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/row_kernel.h"

namespace npumesh {
namespace {

Status CheckOrdered(const OpContext& op) {
  if (WideTypeOf(op.in("x").dtype) != DataType::kUndefined) return Status();
  return Error(Code::kUnsupported, "{}: x is {}, expected a floating or integer type", op.Who(),
               op.in("x").ToString());
}

template <typename Wide>
bool Less(Wide a, Wide b) {
  return a < b || (b != b && a == a);
}

// Row positions in the wanted order.
template <typename Wide>
void Arrange(const Wide* x, int64_t count, bool descending, std::vector<int64_t>& order) {
  order.resize(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [x, descending](int64_t a, int64_t b) {
    return descending ? Less(x[b], x[a]) : Less(x[a], x[b]);
  });
}

// Makes the kernel with the wide type of x. `make(Wide())` gives the body.
template <typename Make>
std::unique_ptr<Kernel> ByWideType(const OpContext& op, const std::vector<bool>& chosen,
                                   const RowOutputs& outputs, Make make) {
  switch (WideTypeOf(op.in(0).dtype)) {
    case DataType::kDouble:
      return MakeRowKernel<double>(op, {0}, chosen, outputs, make(double()));
    case DataType::kUint64:
      return MakeRowKernel<uint64_t>(op, {0}, chosen, outputs, make(uint64_t()));
    default:
      return MakeRowKernel<int64_t>(op, {0}, chosen, outputs, make(int64_t()));
  }
}

// ---- Sort, TopKV2 ----

Status ExpectIndexType(const OpContext& op, DataType dtype, std::string_view attr) {
  if (dtype == DataType::kInt32 || dtype == DataType::kInt64) return Status();
  return Error(Code::kUnsupported, "{}: attribute \"{}\" asks for {}, expected int32 or int64",
               op.Who(), attr, Name(dtype));
}

// Sort: everything along an axis. TopK: the first k, whose axis then has k elements.
struct Selection {
  std::vector<bool> chosen;
  Shape shape;
  bool descending = false;
  DataType indices = DataType::kInt32;
};

Result<Selection> SelectionOf(const OpContext& op) {
  const bool sorts = op.schema().type == "Sort";
  const Shape& x = op.in("x").shape;
  const std::string_view axis_name = sorts ? "axis" : "dim";
  const std::string_view type_name = sorts ? "y2_dtype" : "indices_dtype";
  Selection selection;
  selection.shape = x;
  selection.descending = op.attr_bool(sorts ? "descending" : "largest");
  NPUMESH_ASSIGN_OR_RETURN(selection.indices, op.attr_dtype(type_name));
  NPUMESH_RETURN_IF_ERROR(ExpectIndexType(op, selection.indices, type_name));
  NPUMESH_ASSIGN_OR_RETURN(const int axis,
                           AxisOf(op, op.attr_int(axis_name), std::max(x.rank(), 1), axis_name));
  selection.chosen = ChooseAxis(x.rank(), axis);
  if (sorts) return selection;
  NPUMESH_ASSIGN_OR_RETURN(const int64_t k, op.Int("k"));
  const int64_t most = x.rank() == 0 ? 1 : x[axis];
  if (k < 0 || k > most) {
    return Error(Code::kInvalidArgument, "{}: k is {}, but x {} has {} elements along axis {}",
                 op.Who(), k, x.ToString(), most, axis);
  }
  if (x.rank() > 0) selection.shape[axis] = k;
  return selection;
}

Status InferSelection(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckOrdered(op));
  NPUMESH_ASSIGN_OR_RETURN(const Selection selection, SelectionOf(op));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("x").dtype, selection.shape));
  return SetOutput(op, 1, selection.indices, selection.shape);
}

Result<std::unique_ptr<Kernel>> MakeSelection(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Selection selection, SelectionOf(op));
  const int64_t columns = AxisRows(op.in("x").shape, selection.chosen).columns();
  const int64_t taken = AxisRows(selection.shape, selection.chosen).columns();
  return ByWideType(op, selection.chosen, {selection.shape, {0}, 1}, [&](auto wide) {
    using Wide = decltype(wide);
    const bool descending = selection.descending;
    return RowBody<Wide>([columns, taken, descending, order = std::vector<int64_t>()](
                             const Wide* x, Wide* values, int64_t* indices) mutable {
      Arrange(x, columns, descending, order);
      for (int64_t i = 0; i < taken; ++i) {
        indices[i] = order[static_cast<size_t>(i)];
        values[i] = x[indices[i]];
      }
    });
  });
}

// ---- ArgMaxV2, ArgMin, ArgMaxWithValue, ArgMinWithValue and those with attributes ----

struct ArgRow {
  std::string_view type;
  bool largest;
  bool by_attr;  // the dimension is an attribute
  bool with_value;
};

constexpr ArgRow kArgRows[] = {
    {"ArgMaxV2", true, false, false},      {"ArgMin", false, false, false},
    {"ArgMaxD", true, true, false},        {"ArgMinD", false, true, false},
    {"ArgMaxWithValue", true, true, true}, {"ArgMinWithValue", false, true, true},
};

struct Arg {
  std::vector<bool> chosen;
  Shape kept;
  DataType indices;
};

Result<Arg> ArgOf(const OpContext& op, const ArgRow& row) {
  const Shape& x = op.in("x").shape;
  NPUMESH_ASSIGN_OR_RETURN(const int64_t dimension, op.Int("dimension"));
  NPUMESH_ASSIGN_OR_RETURN(const int axis,
                           AxisOf(op, dimension, std::max(x.rank(), 1), "dimension"));
  const std::string_view attr = row.with_value ? "indice_dtype" : "dtype";
  Arg arg{ChooseAxis(x.rank(), axis), {}, DataType::kUndefined};
  NPUMESH_ASSIGN_OR_RETURN(arg.indices, op.attr_dtype(attr));
  NPUMESH_RETURN_IF_ERROR(ExpectIndexType(op, arg.indices, attr));
  if (x.rank() > 0 && x[axis] == 0) {
    return Error(Code::kInvalidArgument, "{}: x {} has no elements along axis {} to choose from",
                 op.Who(), x.ToString(), axis);
  }
  arg.kept = Reduced(x, arg.chosen, true);
  return arg;
}

Status InferArg(OpContext& op, const ArgRow& row) {
  NPUMESH_RETURN_IF_ERROR(CheckOrdered(op));
  NPUMESH_ASSIGN_OR_RETURN(const Arg arg, ArgOf(op, row));
  const bool keep = row.with_value && op.attr_bool("keep_dims");
  const Shape shape = Reduced(op.in("x").shape, arg.chosen, keep);
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, arg.indices, shape));
  return row.with_value ? SetOutput(op, 1, op.in("x").dtype, shape) : Status();
}

Result<std::unique_ptr<Kernel>> MakeArg(const OpContext& op, const ArgRow& row) {
  NPUMESH_ASSIGN_OR_RETURN(const Arg arg, ArgOf(op, row));
  const int64_t columns = AxisRows(op.in("x").shape, arg.chosen).columns();
  const bool largest = row.largest;
  RowOutputs outputs{arg.kept, {}, 0};
  if (row.with_value) outputs.values = {1};
  return ByWideType(op, arg.chosen, outputs, [&](auto wide) {
    using Wide = decltype(wide);
    return RowBody<Wide>([columns, largest](const Wide* x, Wide* values, int64_t* indices) {
      // A NaN is what both searches find, as every maximum and minimum does.
      int64_t best = 0;
      for (int64_t i = 1; i < columns && x[best] == x[best]; ++i) {
        const bool better = largest ? Less(x[best], x[i]) : x[i] < x[best] || x[i] != x[i];
        if (better) best = i;
      }
      indices[0] = best;
      values[0] = x[best];
    });
  });
}

void RegisterArgOps(OpRegistry& registry) {
  for (const ArgRow& row : kArgRows) {
    Operator op;
    op.schema.type = row.type;
    op.schema.inputs = {{"x"}};
    op.schema.outputs = {{"y"}};
    if (row.with_value) {
      op.schema.outputs = {{"indice"}, {"values"}};
      op.schema.attrs = {{"dimension", Required::kInt},
                         {"keep_dims", AttrValue::Bool(false)},
                         {"indice_dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt32))}};
    } else {
      op.schema.attrs = {{"dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt64))}};
      if (row.by_attr) op.schema.attrs.push_back({"dimension", Required::kInt});
    }
    if (!row.by_attr) {
      op.schema.inputs.push_back({"dimension"});
      op.value_inputs = {"dimension"};
    }
    op.infer = [&row](OpContext& context) { return InferArg(context, row); };
    op.make_kernel = [&row](const OpContext& context) { return MakeArg(context, row); };
    registry.Add(std::move(op));
  }
}

// ---- Cumsum, Cumprod ----

struct ScanRow {
  std::string_view type;
  bool multiplies;
  bool by_attr;  // the axis is an attribute
};

constexpr ScanRow kScanRows[] = {
    {"Cumsum", false, false},
    {"CumsumD", false, true},
    {"Cumprod", true, false},
    {"CumprodD", true, true},
};

Result<std::vector<bool>> ScannedAxis(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t axis, op.Int("axis"));
  const int rank = op.in("x").shape.rank();
  NPUMESH_ASSIGN_OR_RETURN(const int normal, AxisOf(op, axis, std::max(rank, 1), "axis"));
  return ChooseAxis(rank, normal);
}

Status InferScan(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(CheckOrdered(op));
  NPUMESH_RETURN_IF_ERROR(ScannedAxis(op).status());
  return SetOutput(op, 0, x.dtype, x.shape);
}

// Unsigned arithmetic, because sums and products of integers wrap.
double Join(double a, double b, bool multiplies) {
  return multiplies ? a * b : a + b;
}
uint64_t Join(uint64_t a, uint64_t b, bool multiplies) {
  return multiplies ? a * b : a + b;
}
int64_t Join(int64_t a, int64_t b, bool multiplies) {
  return static_cast<int64_t>(Join(static_cast<uint64_t>(a), static_cast<uint64_t>(b), multiplies));
}

Result<std::unique_ptr<Kernel>> MakeScan(const OpContext& op, const ScanRow& row) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<bool> chosen, ScannedAxis(op));
  const int64_t columns = AxisRows(op.in("x").shape, chosen).columns();
  const bool exclusive = op.attr_bool("exclusive");
  const bool reverse = op.attr_bool("reverse");
  const bool multiplies = row.multiplies;
  return ByWideType(op, chosen, {op.in("x").shape, {0}}, [&](auto wide) {
    using Wide = decltype(wide);
    return RowBody<Wide>([=](const Wide* x, Wide* values, int64_t*) {
      Wide total = multiplies ? 1 : 0;
      for (int64_t step = 0; step < columns; ++step) {
        const int64_t i = reverse ? columns - 1 - step : step;
        const Wide before = total;
        total = Join(total, x[i], multiplies);
        values[i] = exclusive ? before : total;
      }
    });
  });
}

void RegisterScanOps(OpRegistry& registry) {
  for (const ScanRow& row : kScanRows) {
    Operator op;
    op.schema = {row.type,
                 {{"x"}},
                 {{"y"}},
                 {{"exclusive", AttrValue::Bool(false)}, {"reverse", AttrValue::Bool(false)}}};
    if (row.by_attr) {
      op.schema.attrs.push_back({"axis", Required::kInt});
    } else {
      op.schema.inputs.push_back({"axis"});
      op.value_inputs = {"axis"};
    }
    op.infer = InferScan;
    op.make_kernel = [&row](const OpContext& context) { return MakeScan(context, row); };
    registry.Add(std::move(op));
  }
}

}  // namespace

void RegisterOrderOps(OpRegistry& registry) {
  registry.Add({.schema = {"Sort",
                           {{"x"}},
                           {{"y1"}, {"y2"}},
                           {{"axis", AttrValue::Int(-1)},
                            {"descending", AttrValue::Bool(false)},
                            {"stable", AttrValue::Bool(false)},
                            {"y2_dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt32))}}},
                .infer = InferSelection,
                .make_kernel = MakeSelection});
  for (const std::string_view type : {"TopKV2", "TopK"}) {
    registry.Add(
        {.schema = {type,
                    {{"x"}, {"k"}},
                    {{"values"}, {"indices"}},
                    {{"sorted", AttrValue::Bool(true)},
                     {"dim", AttrValue::Int(-1)},
                     {"largest", AttrValue::Bool(true)},
                     {"indices_dtype", AttrValue::Int(static_cast<int64_t>(DataType::kInt32))}}},
         .infer = InferSelection,
         .make_kernel = MakeSelection,
         .value_inputs = {"k"}});
  }
  RegisterArgOps(registry);
  RegisterScanOps(registry);
}

}  // namespace npumesh
