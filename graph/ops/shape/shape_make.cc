// Tensors made from a few numbers: OneHot, Eye and LinSpace; and Triu and Tril.
#include <algorithm>
#include <cstring>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// ---- OneHot ----

struct OneHotPlan : Planned {
  int64_t count = 0;  // elements of x
  int64_t depth = 0;
  int64_t inner = 1;  // elements of x after the new dimension
  size_t element = 0;
  int on = 0, off = 0;  // slots
  ConvertFn load = nullptr;
  Workspace<int64_t> hot;
};

OneHotPlan PlanOneHot(const OpContext& op, Check& check) {
  const TensorType &x = op.in("x"), &on = op.in("on_value");
  check.Supported(IsInteger(x.dtype), "x is {}, expected integers", x);
  OneHotPlan plan;
  plan.element = check.Take(ElementBytes(op, on.dtype));
  check.SameType("off_value", "on_value");
  check.Elements("on_value", {1});
  check.Elements("off_value", {1});
  const int axis = check.Axis("axis", x.shape.rank() + 1);  // counts in the result
  plan.depth = check.Take(op.Int("depth"));
  check.That(plan.depth >= 0, "\"depth\" is {}, expected 0 or more", plan.depth);
  plan.count = x.shape.elements();
  plan.inner = ElementsBetween(x.shape, axis, x.shape.rank());
  plan.on = op.slot("on_value");
  plan.off = op.slot("off_value");
  plan.load = FindConvert(x.dtype, DataType::kInt64);
  plan.hot = plan.scratch.Take<int64_t>(plan.count);
  plan.outputs = {{on.dtype, Spliced(x.shape, axis, axis, {plan.depth})}};
  return plan;
}

Status RunOneHot(const OneHotPlan& plan, const KernelArgs& args) {
  int64_t* hot = plan.hot(args);
  plan.load(args.in[0], hot, static_cast<size_t>(plan.count));
  auto* y = static_cast<std::byte*>(args.out[0]);
  const auto set = [&](int64_t place, int slot) {
    std::memcpy(y + static_cast<size_t>(place) * plan.element, args.in[slot], plan.element);
  };
  for (int64_t i = 0; i < plan.count * plan.depth; ++i) set(i, plan.off);
  for (int64_t i = 0; i < plan.count; ++i) {
    if (hot[i] < 0 || hot[i] >= plan.depth) continue;
    set((i / plan.inner * plan.depth + hot[i]) * plan.inner + i % plan.inner, plan.on);
  }
  return Status();
}

// ---- Eye ----

struct EyePlan : Planned {
  size_t element = 0;
  ConvertFn one = nullptr;
};

EyePlan PlanEye(const OpContext& op, Check& check) {
  const DataType dtype = check.Take(op.attr_dtype("dtype"));
  EyePlan plan;
  plan.one = FindConvert(DataType::kFloat, dtype);
  check.Supported(plan.one != nullptr, "no identity matrix of type {}", Name(dtype));
  plan.element = check.Take(ElementBytes(op, dtype));
  const int64_t rows = op.attr_int("num_rows"), columns = op.attr_int("num_columns");
  std::vector<int64_t> dims = op.attr_ints("batch_shape");
  dims.push_back(rows);
  dims.push_back(columns > 0 ? columns : rows);
  plan.outputs = {{dtype, Shape(std::move(dims))}};
  return plan;
}

Status RunEye(const EyePlan& plan, const KernelArgs& args) {
  constexpr float kOne = 1;
  const TensorType& y = plan.outputs[0];
  const int rank = y.shape.rank();
  const int64_t rows = y.shape[rank - 2], columns = y.shape[rank - 1];
  const int64_t matrix = rows * columns, elements = y.shape.elements();
  auto* to = static_cast<std::byte*>(args.out[0]);
  ClearOutput(plan, args, 0);
  for (int64_t first = 0; first < elements; first += matrix) {
    for (int64_t i = 0; i < std::min(rows, columns); ++i) {
      plan.one(&kOne, to + static_cast<size_t>(first + i * columns + i) * plan.element, 1);
    }
  }
  return Status();
}

// ---- Triu, Tril: one side of the diagonal of every matrix, zeros on the other ----

struct TrianglePlan : Planned {
  int64_t matrices = 0, rows = 0, columns = 0;
  int64_t diagonal = 0;  // within [-rows, columns]
  size_t element = 0;
};

TrianglePlan PlanTriangle(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank();
  TrianglePlan plan;
  plan.element = check.Take(ElementBytes(op, x.dtype));
  check.That(rank >= 2, "x is {}, expected rank 2 or more", x);
  if (!check.ok()) return {};
  plan.matrices = ElementsBetween(x.shape, 0, rank - 2);
  plan.rows = x.shape[rank - 2];
  plan.columns = x.shape[rank - 1];
  plan.diagonal = std::clamp(op.attr_int("diagonal"), -plan.rows, plan.columns);
  plan.outputs = {x};
  return plan;
}

template <bool kUpper>
Status RunTriangle(const TrianglePlan& plan, const KernelArgs& args) {
  if (plan.matrices * plan.rows * plan.columns == 0) return Status();
  const size_t row_bytes = static_cast<size_t>(plan.columns) * plan.element;
  const auto* from = static_cast<const std::byte*>(args.in[0]);
  auto* to = static_cast<std::byte*>(args.out[0]);
  for (int64_t i = 0; i < plan.matrices * plan.rows; ++i, from += row_bytes, to += row_bytes) {
    // The first column of the upper triangle, or one past the lower one.
    const int64_t border =
        std::clamp(i % plan.rows + plan.diagonal + (kUpper ? 0 : 1), int64_t{0}, plan.columns);
    const size_t left = static_cast<size_t>(border) * plan.element;
    const size_t right = row_bytes - left;
    std::memcpy(kUpper ? to + left : to, kUpper ? from + left : from, kUpper ? right : left);
    std::memset(kUpper ? to : to + left, 0, kUpper ? left : right);
  }
  return Status();
}

// ---- LinSpace ----

Planned PlanLinSpace(const OpContext& op, Check& check) {
  const TensorType& start = op.in("start");
  check.SameType("stop", "start");
  // The vendor's types. int64 is not among them: numbers between two integers would be lost.
  constexpr TypeSet kTypes =
      kFloatsAndDouble | DataType::kInt8 | DataType::kInt16 | DataType::kInt32 | DataType::kUint8;
  check.Supported(kTypes.Contains(start.dtype),
                  "start is {}, expected {}; give floats, as in torch.linspace(0.0, 1.0, 5)", start,
                  kTypes);
  check.Elements("start", {1});
  check.Elements("stop", {1});
  const int64_t count = check.Take(op.Int("num"));
  check.Keep(AskForLists(op, count, sizeof(double)));
  return {.outputs = {{start.dtype, {count}}}};
}

// Both ends are exact; each half counts from its own end.
Status RunLinSpace(const Planned&, RealTensors& t) {
  const double start = t.in[0][0], stop = t.in[1][0];
  std::vector<double>& y = t.out[0];
  const auto count = std::ssize(y);
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  for (int64_t i = 0; i < count; ++i) {
    y[static_cast<size_t>(i)] = i < count - i ? start + step * static_cast<double>(i)
                                              : stop - step * static_cast<double>(count - 1 - i);
  }
  if (count == 1) y[0] = start;
  return Status();
}

}  // namespace

void RegisterMakeOps(OpRegistry& registry) {
  registry.Add(Define<PlanOneHot, RunOneHot>(
      "OneHot(x, depth, on_value, off_value; axis=-1) -> y",
      {.value_inputs = {"depth"}, .axes = "x[..] -> y[.. n ..]; n = axis"}));
  registry.Add(
      Define<PlanEye, RunEye>("Eye(; num_rows:int, num_columns=0, batch_shape=[], dtype=0) -> y"));
  registry.Add(Define<PlanTriangle, RunTriangle<true>>("Triu(x; diagonal=0) -> y",
                                                       {.axes = "x[.. r! c!] -> y[.. r c]"}));
  registry.Add(Define<PlanTriangle, RunTriangle<false>>("Tril(x; diagonal=0) -> y",
                                                        {.axes = "x[.. r! c!] -> y[.. r c]"}));
  registry.Add(DefineReal<PlanLinSpace, RunLinSpace>("LinSpace(start, stop, num) -> output",
                                                     {.value_inputs = {"num"}}));
}

}  // namespace npumesh
