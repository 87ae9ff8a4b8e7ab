// Sorting, the largest and smallest elements, and running sums.
//
// NaN counts as larger than every number when elements are put in order. Equal elements keep their
// order; of several largest or smallest elements the first is taken.
#include <algorithm>
#include <numeric>

#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/signature.h"
#include "graph/ops/index/family.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"

namespace npumesh {
namespace {

Status CheckOrdered(const OpContext& op) {
  if (WideTypeOf(op.in("x").dtype) != DataType::kUndefined) return Status();
  return Error(Code::kUnsupported, "{}: x is {}, expected a floating or integer type", op.Who(),
               op.in("x").ToString());
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

// The kernel of rows along the chosen axes; `make(Wide())` gives the body.
template <typename Make>
std::unique_ptr<Kernel> RowsOf(const OpContext& op, const std::vector<bool>& chosen,
                               const RowOutputs& outputs, Make make) {
  return ByWideType(op.in(0).dtype, [&](auto wide) {
    return MakeRowKernel<decltype(wide)>(op, {0}, chosen, outputs, make(wide));
  });
}

// ---- Sort, TopKV2 ----

// Attributes of an operator that sorts.
struct SortNames {
  std::string_view axis, dtype, descending;
  bool whole;  // the row, not its first k
};

constexpr SortNames kSort = {"axis", "y2_dtype", "descending", true};
constexpr SortNames kTopK = {"dim", "indices_dtype", "largest", false};

// Sort: everything along an axis. TopK: the first k, whose axis then has k elements.
struct Selection {
  std::vector<bool> chosen;
  Shape shape;
  bool descending = false;
  DataType indices = DataType::kInt32;
};

Result<Selection> SelectionOf(const OpContext& op, const SortNames& names) {
  const Shape& x = op.in("x").shape;
  Check check(op);
  Selection selection;
  selection.shape = x;
  selection.descending = op.attr_bool(names.descending);
  selection.indices = check.TypeOf(names.dtype, kIndices);
  const int axis = check.Axis(names.axis, std::max(x.rank(), 1));
  selection.chosen = ChooseAxis(x.rank(), axis);
  if (names.whole || !check.ok()) return check.Done(std::move(selection));
  const int64_t k = check.Take(op.Int("k")), most = x.rank() == 0 ? 1 : x[axis];
  check.That(k >= 0 && k <= most, "k is {}, but x {} has {} elements along axis {}", k, x, most,
             axis);
  if (x.rank() > 0) selection.shape[axis] = k;
  return check.Done(std::move(selection));
}

template <const SortNames& kNames>
Status InferSelection(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckOrdered(op));
  NPUMESH_ASSIGN_OR_RETURN(const Selection selection, SelectionOf(op, kNames));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("x").dtype, selection.shape));
  return SetOutput(op, 1, selection.indices, selection.shape);
}

template <const SortNames& kNames>
Result<std::unique_ptr<Kernel>> MakeSelection(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Selection selection, SelectionOf(op, kNames));
  const int64_t columns = AxisRows(op.in("x").shape, selection.chosen).columns();
  const int64_t taken = AxisRows(selection.shape, selection.chosen).columns();
  return RowsOf(op, selection.chosen, {selection.shape, {0}, 1}, [&](auto wide) {
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

struct Arg {
  std::vector<bool> chosen;
  Shape kept;
  DataType indices = DataType::kUndefined;
};

Result<Arg> ArgOf(const OpContext& op, std::string_view index_type) {
  const Shape& x = op.in("x").shape;
  const int rank = x.rank();
  Check check(op);
  const int64_t dimension = check.Take(op.Int("dimension"));
  const int axis = check.Take(AxisOf(op, dimension, std::max(rank, 1), "dimension"));
  if (!check.ok()) return check.status();
  Arg arg;
  arg.indices = check.TypeOf(index_type, kIndices);
  check.That(rank == 0 || x[axis] != 0, "x {} has no elements along axis {} to choose from", x,
             axis);
  arg.chosen = ChooseAxis(rank, axis);
  arg.kept = Reduced(x, arg.chosen, true);
  return check.Done(std::move(arg));
}

constexpr std::string_view IndexTypeName(bool with_value) {
  return with_value ? "indice_dtype" : "dtype";
}

template <bool kWithValue>
Status InferArg(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckOrdered(op));
  NPUMESH_ASSIGN_OR_RETURN(const Arg arg, ArgOf(op, IndexTypeName(kWithValue)));
  const bool keep = kWithValue && op.attr_bool("keep_dims");
  const Shape shape = Reduced(op.in("x").shape, arg.chosen, keep);
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, arg.indices, shape));
  return kWithValue ? SetOutput(op, 1, op.in("x").dtype, shape) : Status();
}

template <bool kLargest, bool kWithValue>
Result<std::unique_ptr<Kernel>> MakeArg(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Arg arg, ArgOf(op, IndexTypeName(kWithValue)));
  const int64_t columns = AxisRows(op.in("x").shape, arg.chosen).columns();
  RowOutputs outputs{arg.kept, {}, 0};
  if (kWithValue) outputs.values = {1};
  return RowsOf(op, arg.chosen, outputs, [&](auto wide) {
    using Wide = decltype(wide);
    return RowBody<Wide>([columns](const Wide* x, Wide* values, int64_t* indices) {
      // A NaN is what both searches find, as every maximum and minimum does.
      int64_t best = 0;
      for (int64_t i = 1; i < columns && x[best] == x[best]; ++i) {
        const bool better = kLargest ? Less(x[best], x[i]) : x[i] < x[best] || x[i] != x[i];
        if (better) best = i;
      }
      indices[0] = best;
      values[0] = x[best];
    });
  });
}

template <bool kLargest, bool kWithValue = false>
Operator ArgOperator(std::string_view signature) {
  return {.schema = Signature(signature),
          .infer = InferArg<kWithValue>,
          .make_kernel = MakeArg<kLargest, kWithValue>};
}

// ---- Cumsum, Cumprod ----

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

template <bool kMultiplies>
Result<std::unique_ptr<Kernel>> MakeScan(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<bool> chosen, ScannedAxis(op));
  const int64_t columns = AxisRows(op.in("x").shape, chosen).columns();
  const bool exclusive = op.attr_bool("exclusive"), reverse = op.attr_bool("reverse");
  return RowsOf(op, chosen, {op.in("x").shape, {0}}, [&](auto wide) {
    using Wide = decltype(wide);
    return RowBody<Wide>([=](const Wide* x, Wide* values, int64_t*) {
      Wide total = kMultiplies ? 1 : 0;
      for (int64_t step = 0; step < columns; ++step) {
        const int64_t i = reverse ? columns - 1 - step : step;
        const Wide before = total;
        total = Join(total, x[i], kMultiplies);
        values[i] = exclusive ? before : total;
      }
    });
  });
}

template <bool kMultiplies>
Operator Scan(std::string_view signature) {
  return {.schema = Signature(signature), .infer = InferScan, .make_kernel = MakeScan<kMultiplies>};
}

template <const SortNames& kNames>
Operator Sorting(std::string_view signature) {
  return {.schema = Signature(signature),
          .infer = InferSelection<kNames>,
          .make_kernel = MakeSelection<kNames>};
}

}  // namespace

void RegisterOrderOps(OpRegistry& registry) {
  const auto add_with = [&](std::string_view port, Operator op) {
    op.value_inputs = {port};
    registry.Add(std::move(op));
  };
  registry.Add(
      Sorting<kSort>("Sort(x; axis=-1, descending=false, stable=false, y2_dtype=3) -> y1, y2"));
  add_with("k", Sorting<kTopK>("TopKV2(x, k; sorted=true, dim=-1, largest=true, indices_dtype=3) "
                               "-> values, indices"));
  add_with("k", Sorting<kTopK>("TopK(x, k; sorted=true, dim=-1, largest=true, indices_dtype=3) "
                               "-> values, indices"));
  add_with("dimension", ArgOperator<true>("ArgMaxV2(x, dimension; dtype=9) -> y"));
  add_with("dimension", ArgOperator<false>("ArgMin(x, dimension; dtype=9) -> y"));
  registry.Add(ArgOperator<true>("ArgMaxD(x; dtype=9, dimension:int) -> y"));
  registry.Add(ArgOperator<false>("ArgMinD(x; dtype=9, dimension:int) -> y"));
  registry.Add(ArgOperator<true, true>(
      "ArgMaxWithValue(x; dimension:int, keep_dims=false, indice_dtype=3) -> indice, values"));
  registry.Add(ArgOperator<false, true>(
      "ArgMinWithValue(x; dimension:int, keep_dims=false, indice_dtype=3) -> indice, values"));
  add_with("axis", Scan<false>("Cumsum(x, axis; exclusive=false, reverse=false) -> y"));
  add_with("axis", Scan<true>("Cumprod(x, axis; exclusive=false, reverse=false) -> y"));
  registry.Add(Scan<false>("CumsumD(x; exclusive=false, reverse=false, axis:int) -> y"));
  registry.Add(Scan<true>("CumprodD(x; exclusive=false, reverse=false, axis:int) -> y"));
}

}  // namespace npumesh
