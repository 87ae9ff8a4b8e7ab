// Operators that rename the dimensions of the same bytes: they only infer.
#include <algorithm>

#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/shape/family.h"
#include "graph/ops/shape/shape_plan.h"

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

// `wanted` with every 0 replaced by the dimension of x at the same position. An empty x whose
// element count the literal zeros already give keeps them.
std::vector<int64_t> ZerosCopied(Check& check, std::vector<int64_t> wanted, const Shape& x,
                                 int first) {
  const bool inferred = std::find(wanted.begin(), wanted.end(), -1) != wanted.end();
  if (x.elements() == 0 && !inferred) return wanted;
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

Status InferReshape(OpContext& op) {
  const auto& [dtype, x] = op.in("x");
  Check check(op);
  std::vector<int64_t> wanted = check.Take(op.Ints("shape"));
  const DimRange range = ReplacedDims(check, op, x.rank());
  if (!check.ok()) return check.status();
  wanted = ZerosCopied(check, std::move(wanted), x, range.begin);
  wanted.insert(wanted.begin(), x.dims().begin(), x.dims().begin() + range.begin);
  wanted.insert(wanted.end(), x.dims().begin() + range.end, x.dims().end());
  Shape shape = Completed(check, op, Shape(std::move(wanted)), x);
  return check.ok() ? SetOutput(op, 0, dtype, std::move(shape)) : check.status();
}

// x without the 1s that `axes` name; without any 1 when there are no axes.
Status SetSqueezed(OpContext& op, const std::vector<int64_t>& axes, std::string_view what) {
  const TensorType& x = op.in("x");
  std::vector<bool> drop(static_cast<size_t>(x.shape.rank()), false);
  for (const int64_t listed : axes) {
    NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, listed, x.shape.rank(), what));
    if (x.shape[axis] != 1) {
      return Error(Code::kInvalidArgument, "{}: dimension {} of {} is {}, only a 1 can be squeezed",
                   op.Who(), axis, x.shape.ToString(), x.shape[axis]);
    }
    drop[static_cast<size_t>(axis)] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < x.shape.rank(); ++i) {
    const bool dropped = axes.empty() ? x.shape[i] == 1 : drop[static_cast<size_t>(i)];
    if (!dropped) dims.push_back(x.shape[i]);
  }
  return SetOutput(op, 0, x.dtype, Shape(std::move(dims)));
}

// x with a 1 at each of `positions`, which count in the result.
Status SetUnsqueezed(OpContext& op, const std::vector<int64_t>& positions, std::string_view what) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank() + static_cast<int>(positions.size());
  NPUMESH_ASSIGN_OR_RETURN(const auto axes, DistinctAxes(op, positions, rank, what));
  std::vector<bool> inserted(static_cast<size_t>(rank), false);
  for (const int axis : axes) inserted[static_cast<size_t>(axis)] = true;
  std::vector<int64_t> dims;
  int next = 0;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(inserted[static_cast<size_t>(i)] ? 1 : x.shape[next++]);
  }
  return SetOutput(op, 0, x.dtype, Shape(std::move(dims)));
}

// ---- axes from an attribute, or from an input that may be absent ----

using SetFn = Status (*)(OpContext& op, const std::vector<int64_t>& axes, std::string_view what);

template <SetFn kSet>
InferFn ByAttribute(std::string_view name) {
  return [name](OpContext& op) { return kSet(op, op.attr_ints(name), name); };
}

template <SetFn kSet>
InferFn ByInput(std::string_view port) {
  return [port](OpContext& op) -> Status {
    if (!op.has(port)) return kSet(op, {}, port);
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, op.Ints(port));
    return kSet(op, axes, port);
  };
}

// ---- Flatten, FlattenV2 ----

// [product before the axis, product from it on]; an axis past the last dimension leaves a 1.
Status InferFlatten(OpContext& op) {
  const Shape& x = op.in("x").shape;
  const int64_t axis = op.attr_int("axis");
  const int64_t split = axis < 0 ? axis + x.rank() : axis;
  if (split < 0 || split > x.rank()) {
    return Error(Code::kInvalidArgument, "{}: \"axis\" is {}, but x is {}", op.Who(), axis,
                 x.ToString());
  }
  const int at = static_cast<int>(split);
  return SetOutput(op, 0, op.in("x").dtype,
                   {ElementsBetween(x, 0, at), ElementsBetween(x, at, x.rank())});
}

Status InferFlattenV2(OpContext& op) {
  const Shape& x = op.in("x").shape;
  const int rank = std::max(x.rank(), 1);  // a scalar becomes a vector of one element
  Check check(op);
  const int first = check.Axis("axis", rank), last = check.Axis("end_axis", rank);
  check.That(first <= last, "\"axis\" {} lies behind \"end_axis\" {}", first, last);
  if (!check.ok()) return check.status();
  std::vector<int64_t> dims(x.dims().begin(), x.dims().begin() + (x.rank() == 0 ? 0 : first));
  dims.push_back(x.rank() == 0 ? 1 : ElementsBetween(x, first, last + 1));
  if (x.rank() > 0) dims.insert(dims.end(), x.dims().begin() + last + 1, x.dims().end());
  return SetOutput(op, 0, op.in("x").dtype, Shape(std::move(dims)));
}

Status InferExpandDims(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t axis, op.Int("axis"));
  return SetUnsqueezed(op, {axis}, "axis");
}

Operator View(std::string_view signature, InferFn infer,
              std::vector<std::string_view> value_inputs = {}) {
  return {.schema = Signature(signature),
          .infer = std::move(infer),
          .view = true,
          .value_inputs = std::move(value_inputs)};
}

}  // namespace

void RegisterViewOps(OpRegistry& registry) {
  registry.Add(View("Reshape(x, shape; axis=0, num_axes=-1) -> y", InferReshape, {"shape"}));
  registry.Add(View("Squeeze(x; axis=[]) -> y", ByAttribute<SetSqueezed>("axis")));
  registry.Add(View("SqueezeV2(x; axis=[]) -> y", ByAttribute<SetSqueezed>("axis")));
  registry.Add(View("SqueezeV3(x, axes?) -> y", ByInput<SetSqueezed>("axes"), {"axes"}));
  registry.Add(View("Unsqueeze(x; axes=[]) -> y", ByAttribute<SetUnsqueezed>("axes")));
  registry.Add(View("UnsqueezeV2(x; axis=[]) -> y", ByAttribute<SetUnsqueezed>("axis")));
  registry.Add(View("UnsqueezeV3(x, axes) -> y", ByInput<SetUnsqueezed>("axes"), {"axes"}));
  registry.Add(View("Flatten(x; axis=1) -> y", InferFlatten));
  registry.Add(View("FlattenV2(x; axis=1, end_axis=-1) -> y", InferFlattenV2));
  registry.Add(View("ExpandDims(x, axis) -> y", InferExpandDims, {"axis"}));
}

}  // namespace npumesh
