// Operators that rename the dimensions of the same bytes, which only infer; and those whose result
// follows from shapes alone.
#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/shape/shape_plan.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// The dimensions of x that Reshape replaces: all, or [axis, axis + num_axes) (Caffe).
struct DimRange {
  int begin = 0, end = 0;
};

DimRange ReplacedDims(Check& check, const OpContext& op, int rank) {
  const int64_t axis = op.attr_int("axis"), count = op.attr_int("num_axes");
  const int64_t begin = axis < 0 ? axis + rank + 1 : axis;
  const bool fits = begin >= 0 && begin <= rank && count >= -1 && count <= rank - begin;
  check.That(fits, "axis {} and num_axes {} do not fit a tensor of rank {}", axis, count, rank);
  if (!fits) return {};
  return {static_cast<int>(begin), static_cast<int>(count < 0 ? rank : begin + count)};
}

// What a 0 in "shape" is, by the attribute "allowzero": as the frontends of GE set it, or unset.
enum class ZeroDim : int64_t {
  kFitting = -1,  // a copy, unless x is empty and the shape says all sizes: a size of 0 then
  kCopy = 0,      // the dimension of x at the same position
  kSize = 1,      // a size of 0
};

// `wanted` with the zeros that are copies replaced by dimensions of x.
std::vector<int64_t> ZerosCopied(Check& check, const OpContext& op, std::vector<int64_t> wanted,
                                 const Shape& x, int first) {
  const int64_t allow = op.attr_int("allowzero");
  check.That(allow >= -1 && allow <= 1, "allowzero is {}; expected -1, 0 or 1", allow);
  const auto zero = static_cast<ZeroDim>(allow);
  const bool inferred = std::find(wanted.begin(), wanted.end(), -1) != wanted.end();
  if (zero == ZeroDim::kSize) return wanted;
  if (zero == ZeroDim::kFitting && x.elements() == 0 && !inferred) return wanted;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != 0) continue;
    const int position = first + static_cast<int>(i);
    check.That(position < x.rank(), "\"shape\" is 0 at position {}, but x is {}", i, x);
    wanted[i] = position < x.rank() ? x[position] : 0;
  }
  return wanted;
}

// The target with its -1 computed from the element count of x.
Shape Completed(Check& check, const OpContext& op, Shape target, const Shape& x) {
  int64_t* unknown = nullptr;
  Shape known = target;
  for (int i = 0; i < target.rank(); ++i) {
    if (target[i] != -1) continue;
    check.That(unknown == nullptr, "the target {} has more than one -1", target);
    unknown = &target[i];
    known[i] = 1;
  }
  check.Keep(known.Check().WithContext(op.Who()));
  if (!check.ok()) return target;
  const int64_t product = known.is_static() ? known.elements() : -1;
  const bool fits =
      unknown != nullptr ? product > 0 && x.elements() % product == 0 : product == x.elements();
  check.That(fits, "x is {} with {} elements, which do not fit the shape {}", op.in("x"),
             x.elements(), target);
  if (fits && unknown != nullptr) *unknown = x.elements() / product;
  return target;
}

// The bytes of x under another shape.
Planned Reshaped(const OpContext& op, Shape y) {
  return {.outputs = {{op.in("x").dtype, std::move(y)}}};
}

Planned PlanReshape(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  std::vector<int64_t> wanted = check.Take(op.Ints("shape"));
  const DimRange range = ReplacedDims(check, op, x.rank());
  if (!check.ok()) return {};
  wanted = ZerosCopied(check, op, std::move(wanted), x, range.begin);
  return Reshaped(op, Completed(check, op, Spliced(x, range.begin, range.end, wanted), x));
}

// ---- listed axes; an input may be absent ----

std::vector<int64_t> ListedAxes(const OpContext& op, Check& check) {
  if (op.schema().inputs.size() > 1 && !op.has(AxesName(op))) return {};
  return check.Take(op.Ints(AxesName(op)));
}

// x without the 1s that the axes name; without any 1 when there are no axes.
Planned PlanSqueeze(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const std::vector<int64_t> axes = ListedAxes(op, check);
  std::vector<bool> drop;
  for (const int64_t dim : x.dims()) drop.push_back(axes.empty() && dim == 1);
  for (const int64_t listed : axes) {
    const int axis = check.Take(AxisOf(op, listed, x.rank(), AxesName(op)));
    if (!check.ok()) return {};
    check.That(x[axis] == 1, "dimension {} of {} is {}, only a 1 can be squeezed", axis, x,
               x[axis]);
    drop[static_cast<size_t>(axis)] = true;
  }
  return Reshaped(op, Reduced(x, drop, false));
}

// x with a 1 at each of the positions, which count in the result.
Planned PlanUnsqueeze(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const std::vector<int64_t> positions = ListedAxes(op, check);
  const int rank = x.rank() + static_cast<int>(positions.size());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (const int axis : DistinctAxes(op, positions, rank, AxesName(op), check)) {
    dims[static_cast<size_t>(axis)] = 1;
  }
  if (!check.ok()) return {};
  int next = 0;
  for (int64_t& dim : dims) dim = dim == 1 ? 1 : x[next++];
  return Reshaped(op, Shape(std::move(dims)));
}

Planned PlanExpandDims(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const int axis = check.Axis("axis", x.rank() + 1);
  return Reshaped(op, Spliced(x, axis, axis, {1}));
}

// ---- Flatten, FlattenV2 ----

// [product before the axis, product from it on]; an axis past the last dimension leaves a 1.
Planned PlanFlatten(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const int64_t axis = op.attr_int("axis");
  const int64_t split = axis < 0 ? axis + x.rank() : axis;
  check.That(split >= 0 && split <= x.rank(), "\"axis\" is {}, but x is {}", axis, x);
  if (!check.ok()) return {};
  const int at = static_cast<int>(split);
  return Reshaped(op, {ElementsBetween(x, 0, at), ElementsBetween(x, at, x.rank())});
}

Planned PlanFlattenV2(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const int rank = std::max(x.rank(), 1);  // a scalar becomes a vector of one element
  const int first = check.Axis("axis", rank), last = check.Axis("end_axis", rank);
  check.That(first <= last, "\"axis\" {} lies behind \"end_axis\" {}", first, last);
  if (!check.ok()) return {};
  const int end = std::min(last + 1, x.rank());
  return Reshaped(op, Spliced(x, first, end, {ElementsBetween(x, first, end)}));
}

template <auto PlanFn>
Operator DefineView(std::string_view signature, std::vector<std::string_view> value_inputs = {},
                    Axes axes = {}) {
  return {.schema = Signature(signature),
          .infer = define::Infer<PlanFn>,
          .view = true,
          .value_inputs = std::move(value_inputs),
          .axes = std::move(axes)};
}

// ---- Shape, ShapeN, Size, Rank ----

// Fixed integers, one list for each output.
struct AnswerPlan : Planned {
  std::vector<std::vector<int64_t>> lists;
};

void Answer(Check& check, AnswerPlan* plan, DataType dtype, Shape shape,
            std::vector<int64_t> values) {
  for (const int64_t value : values) {
    check.That(dtype == DataType::kInt64 || value <= INT32_MAX,
               "{} does not fit into int32; ask for int64 with the attribute \"dtype\"", value);
  }
  plan->lists.push_back(std::move(values));
  plan->outputs.push_back({dtype, std::move(shape)});
}

Status RunAnswer(const AnswerPlan& plan, const KernelArgs& args) {
  for (size_t i = 0; i < plan.lists.size(); ++i) {
    const ConvertFn store = FindConvert(DataType::kInt64, plan.outputs[i].dtype);
    store(plan.lists[i].data(), args.out[i], plan.lists[i].size());
  }
  return Status();
}

AnswerPlan PlanShapes(const OpContext& op, Check& check) {
  check.Consistent(op.outputs() == op.slots(), "{} inputs but {} outputs", op.slots(),
                   op.outputs());
  AnswerPlan plan;
  const DataType dtype = check.TypeOf("dtype", kIndices, Code::kInvalidArgument);
  for (int i = 0; i < op.slots(); ++i) {
    const Shape& shape = op.in(i).shape;
    Answer(check, &plan, dtype, {shape.rank()}, shape.dims());
  }
  return plan;
}

AnswerPlan PlanSize(const OpContext& op, Check& check) {
  AnswerPlan plan;
  const DataType dtype = check.TypeOf("dtype", kIndices, Code::kInvalidArgument);
  Answer(check, &plan, dtype, {}, {op.in(0).shape.elements()});
  return plan;
}

AnswerPlan PlanRank(const OpContext& op, Check& check) {
  AnswerPlan plan;
  Answer(check, &plan, DataType::kInt32, {}, {op.in(0).shape.rank()});
  return plan;
}

}  // namespace

void RegisterViewOps(OpRegistry& registry) {
  registry.Add(DefineView<PlanReshape>("Reshape(x, shape; axis=0, num_axes=-1, allowzero=-1) -> y",
                                       {"shape"},
                                       "x[s..], shape[#y] -> y[..]; axis == 0, num_axes == -1"));
  registry.Add(DefineView<PlanSqueeze>("Squeeze(x; axis=[]) -> y"));
  registry.Add(DefineView<PlanSqueeze>("SqueezeV2(x; axis=[]) -> y"));
  registry.Add(DefineView<PlanSqueeze>("SqueezeV3(x, axes?) -> y", {"axes"}));
  registry.Add(DefineView<PlanUnsqueeze>("Unsqueeze(x; axes=[]) -> y"));
  registry.Add(DefineView<PlanUnsqueeze>("UnsqueezeV2(x; axis=[]) -> y"));
  registry.Add(DefineView<PlanUnsqueeze>("UnsqueezeV3(x, axes) -> y", {"axes"}));
  registry.Add(DefineView<PlanFlatten>("Flatten(x; axis=1) -> y"));
  registry.Add(DefineView<PlanFlattenV2>("FlattenV2(x; axis=1, end_axis=-1) -> y"));
  registry.Add(DefineView<PlanExpandDims>("ExpandDims(x, axis) -> y", {"axis"}));
  registry.Add(
      Define<PlanShapes, RunAnswer>("Shape(x; dtype=3) -> y", {.axes = "x[..] -> y[#..]"}));
  registry.Add(
      Define<PlanShapes, RunAnswer>("ShapeN(x...; dtype=3) -> y...", {.axes = "x[..~] -> y[#..]"}));
  registry.Add(Define<PlanSize, RunAnswer>("Size(x; dtype=3) -> y", {.axes = "x[..] -> y[]"}));
  registry.Add(Define<PlanRank, RunAnswer>("Rank(x) -> y", {.axes = "x[..] -> y[]"}));
}

}  // namespace npumesh
