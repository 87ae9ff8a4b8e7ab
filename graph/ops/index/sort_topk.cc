// Sorting, the largest and smallest elements, running sums and running extremes.
//
// NaN counts as larger than every number when elements are put in order. Equal elements keep their
// order; of several largest or smallest elements the first is taken.
#include <algorithm>
#include <functional>
#include <numeric>

#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"

namespace npumesh {
namespace {

// Rows of x along one axis, and the rows of outputs that they become.
struct AlongPlan : Planned {
  int axis = 0;
  int64_t columns = 1;  // of x
  RowOutputs to;
  int64_t taken = 0;                        // sorts: how many of a row
  bool descending = false;                  // sorts
  bool exclusive = false, reverse = false;  // running sums
};

// Objects unless x has an order and the axis that a port or an attribute names.
AlongPlan RowsAlong(const OpContext& op, std::string_view axis, Check& check) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank();
  check.Supported(WideTypeOf(x.dtype) != DataType::kUndefined,
                  "x is {}, expected a floating or integer type", x);
  AlongPlan plan;
  plan.axis = check.Axis(axis, std::max(rank, 1));
  if (rank > 0) plan.columns = x.shape[plan.axis];
  plan.to.shape = x.shape;
  return plan;
}

// `kBody(plan, Wide())` makes the body of the kernel.
template <auto PlanFn, auto kBody>
Operator DefineRows(std::string_view signature, std::vector<std::string_view> value_inputs = {}) {
  const auto make = [](const OpContext& op) -> Result<std::unique_ptr<Kernel>> {
    NPUMESH_ASSIGN_OR_RETURN(const AlongPlan plan, define::PlanCall<PlanFn>(op));
    const std::vector<bool> chosen = ChooseAxis(op.in(0).shape.rank(), plan.axis);
    return ByWideType(op.in(0).dtype, [&](auto wide) {
      return MakeRowKernel<decltype(wide)>(op, {0}, chosen, plan.to, kBody(plan, wide));
    });
  };
  return {.schema = Signature(signature),
          .infer = define::Infer<PlanFn>,
          .make_kernel = make,
          .value_inputs = std::move(value_inputs)};
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

// The first `taken` of them, which are few: the worst of those that are kept is at the front of a
// heap, and most elements are only compared with it.
template <typename Wide>
void ArrangeFirst(const Wide* x, int64_t count, int64_t taken, bool descending,
                  std::vector<int64_t>& order) {
  const auto before = [x, descending](int64_t a, int64_t b) {
    const bool better = descending ? Less(x[b], x[a]) : Less(x[a], x[b]);
    const bool worse = descending ? Less(x[a], x[b]) : Less(x[b], x[a]);
    return better || (!worse && a < b);
  };
  order.resize(static_cast<size_t>(taken));
  std::iota(order.begin(), order.end(), 0);
  if (taken == 0) return;
  std::make_heap(order.begin(), order.end(), before);
  for (int64_t i = taken; i < count; ++i) {
    if (!before(i, order.front())) continue;
    std::pop_heap(order.begin(), order.end(), before);
    order.back() = i;
    std::push_heap(order.begin(), order.end(), before);
  }
  std::sort_heap(order.begin(), order.end(), before);
}

// ---- Sort, TopKV2 ----

AlongPlan PlanSort(const OpContext& op, Check& check) {
  AlongPlan plan = RowsAlong(op, "axis", check);
  plan.descending = op.attr_bool("descending");
  plan.taken = plan.columns;
  plan.to = {plan.to.shape, {0}, 1};
  plan.outputs = {op.in("x"), {check.TypeOf("y2_dtype", kIndices), plan.to.shape}};
  return plan;
}

// The first k, whose axis then has k elements.
AlongPlan PlanTopK(const OpContext& op, Check& check) {
  const auto& [dtype, x] = op.in("x");
  AlongPlan plan = RowsAlong(op, "dim", check);
  const int64_t k = check.Take(op.Int("k"));
  check.That(k >= 0 && k <= plan.columns, "k is {}, but x {} has {} elements along axis {}", k, x,
             plan.columns, plan.axis);
  plan.descending = op.attr_bool("largest");
  plan.taken = x.rank() == 0 ? 1 : k;
  plan.to = {x, {0}, 1};
  if (x.rank() > 0) plan.to.shape[plan.axis] = k;
  plan.outputs = {{dtype, plan.to.shape}, {check.TypeOf("indices_dtype", kIndices), plan.to.shape}};
  return plan;
}

constexpr auto kSorted = [](const AlongPlan& plan, auto wide) {
  using Wide = decltype(wide);
  return [columns = plan.columns, taken = plan.taken, descending = plan.descending,
          order = std::vector<int64_t>(static_cast<size_t>(plan.columns))](
             const Wide* x, Wide* values, int64_t* indices) mutable {
    if (taken < columns / 4) {
      ArrangeFirst(x, columns, taken, descending, order);
    } else {
      Arrange(x, columns, descending, order);
    }
    for (int64_t i = 0; i < taken; ++i) {
      indices[i] = order[static_cast<size_t>(i)];
      values[i] = x[indices[i]];
    }
  };
};

// ---- ArgMaxV2, ArgMin, ArgMaxWithValue, ArgMinWithValue and those with attributes ----

template <bool kWithValue>
AlongPlan PlanArg(const OpContext& op, Check& check) {
  const auto& [dtype, x] = op.in("x");
  AlongPlan plan = RowsAlong(op, "dimension", check);
  const DataType index = check.TypeOf(kWithValue ? "indice_dtype" : "dtype", kIndices);
  check.That(plan.columns > 0, "x {} has no elements along axis {} to choose from", x, plan.axis);
  const std::vector<bool> chosen = ChooseAxis(x.rank(), plan.axis);
  plan.to = {Reduced(x, chosen, true), {}, 0};
  if (kWithValue) plan.to.values = {1};
  const Shape y = Reduced(x, chosen, kWithValue && op.attr_bool("keep_dims"));
  plan.outputs = {{index, y}};
  if (kWithValue) plan.outputs.push_back({dtype, y});
  return plan;
}

template <bool kLargest>
constexpr auto kExtreme = [](const AlongPlan& plan, auto wide) {
  using Wide = decltype(wide);
  return [columns = plan.columns](const Wide* x, Wide* values, int64_t* indices) {
    // A NaN is what both searches find, as every maximum and minimum does.
    int64_t best = 0;
    for (int64_t i = 1; i < columns && x[best] == x[best]; ++i) {
      const bool better = kLargest ? Less(x[best], x[i]) : x[i] < x[best] || x[i] != x[i];
      if (better) best = i;
    }
    indices[0] = best;
    values[0] = x[best];
  };
};

// ---- Cumsum, Cumprod ----

AlongPlan PlanScan(const OpContext& op, Check& check) {
  AlongPlan plan = RowsAlong(op, "axis", check);
  plan.exclusive = op.attr_bool("exclusive");
  plan.reverse = op.attr_bool("reverse");
  plan.to.values = {0};
  plan.outputs = {op.in("x")};
  return plan;
}

template <bool kMultiplies>
constexpr auto kRunning = [](const AlongPlan& plan, auto wide) {
  using Wide = decltype(wide);
  using Join = std::conditional_t<kMultiplies, std::multiplies<>, std::plus<>>;
  return [columns = plan.columns, exclusive = plan.exclusive, reverse = plan.reverse](
             const Wide* x, Wide* values, int64_t*) {
    Wide total = kMultiplies ? 1 : 0;
    for (int64_t step = 0; step < columns; ++step) {
      const int64_t i = reverse ? columns - 1 - step : step;
      const Wide before = total;
      total = Wrapped(Join(), total, x[i]);
      values[i] = exclusive ? before : total;
    }
  };
};

// ---- Cummax, Cummin ----

template <bool kLargest>
AlongPlan PlanRunningExtreme(const OpContext& op, Check& check) {
  AlongPlan plan = RowsAlong(op, kLargest ? "dim" : "axis", check);
  plan.to = {plan.to.shape, {0}, 1};
  // int64, unless the node says that the places are int32.
  const std::vector<TensorDesc>& descs = op.node().output_descs;
  const bool narrow = descs.size() > 1 && descs[1].dtype == DataType::kInt32;
  plan.outputs = {op.in("x"), {narrow ? DataType::kInt32 : DataType::kInt64, plan.to.shape}};
  return plan;
}

// Of equal elements the last is taken, and NaN stays.
template <bool kLargest>
constexpr auto kRunningExtreme = [](const AlongPlan& plan, auto wide) {
  using Wide = decltype(wide);
  return [columns = plan.columns](const Wide* x, Wide* values, int64_t* indices) {
    int64_t best = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const bool stays = x[best] != x[best] && x[i] == x[i];
      const bool better = kLargest ? !(x[i] < x[best]) : !(x[best] < x[i]);
      if (better && !stays) best = i;
      values[i] = x[best];
      indices[i] = best;
    }
  };
};

template <bool kLargest, bool kWithValue = false>
Operator ArgOperator(std::string_view signature, std::vector<std::string_view> value_inputs = {}) {
  Operator op =
      DefineRows<PlanArg<kWithValue>, kExtreme<kLargest>>(signature, std::move(value_inputs));
  op.axes = kWithValue ? "x[.. a! ..] -> indice[.. a?keep_dims ..], values[.. a?keep_dims ..]; "
                         "a = dimension"
                       : "x[.. a! ..] -> y[.. ..]; a = dimension";
  return op;
}

template <bool kMultiplies>
Operator Scan(std::string_view signature, std::vector<std::string_view> value_inputs = {}) {
  Operator op = DefineRows<PlanScan, kRunning<kMultiplies>>(signature, std::move(value_inputs));
  op.precision = PrecisionClass::kBlack;
  op.axes = "x[.. a! ..] -> y[.. a ..]; a = axis";
  return op;
}

}  // namespace

void RegisterOrderOps(OpRegistry& registry) {
  registry.Add(DefineRows<PlanSort, kSorted>(
      "Sort(x; axis=-1, descending=false, stable=false, y2_dtype=3) -> y1, y2"));
  registry.Add(DefineRows<PlanTopK, kSorted>(
      "TopKV2(x, k; sorted=true, dim=-1, largest=true, indices_dtype=3) -> values, indices",
      {"k"}));
  registry.Alias("TopK", "TopKV2");
  registry.Add(ArgOperator<true>("ArgMaxV2(x, dimension; dtype=9) -> y", {"dimension"}));
  registry.Add(ArgOperator<false>("ArgMin(x, dimension; dtype=9) -> y", {"dimension"}));
  registry.Add(ArgOperator<true>("ArgMaxD(x; dtype=9, dimension:int) -> y"));
  registry.Add(ArgOperator<false>("ArgMinD(x; dtype=9, dimension:int) -> y"));
  registry.Add(ArgOperator<true, true>(
      "ArgMaxWithValue(x; dimension:int, keep_dims=false, indice_dtype=3) -> indice, values"));
  registry.Add(ArgOperator<false, true>(
      "ArgMinWithValue(x; dimension:int, keep_dims=false, indice_dtype=3) -> indice, values"));
  registry.Add(Scan<false>("Cumsum(x, axis; exclusive=false, reverse=false) -> y", {"axis"}));
  registry.Add(Scan<true>("Cumprod(x, axis; exclusive=false, reverse=false) -> y", {"axis"}));
  registry.Add(Scan<false>("CumsumD(x; exclusive=false, reverse=false, axis:int) -> y"));
  registry.Add(Scan<true>("CumprodD(x; exclusive=false, reverse=false, axis:int) -> y"));
  registry.Add(DefineRows<PlanRunningExtreme<true>, kRunningExtreme<true>>(
      "Cummax(x; dim:int) -> y, indices"));
  registry.Add(DefineRows<PlanRunningExtreme<false>, kRunningExtreme<false>>(
      "Cummin(x; axis:int) -> y, indices"));
}

}  // namespace npumesh
