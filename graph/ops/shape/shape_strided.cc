// Operators that read x with other strides: Transpose, Permute, BroadcastTo, Expand, Tile and
// AsStrided; and ViewCopy between two such views.
#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/shape/shape_plan.h"

namespace npumesh {
namespace {

// ---- Transpose, Permute ----

// Dimension i of y is the i-th axis of x that is listed; every axis is, exactly once.
CopyPlan PlanTranspose(const OpContext& op, Check& check) {
  CopyPlan plan = CopyOf(op, check);
  const std::string_view what = AxesName(op);
  const std::vector<int64_t> listed = check.Take(op.Ints(what));
  const TensorType& x = op.in("x");
  check.That(listed.size() == x.shape.dims().size(), "\"{}\" has {} entries, x is {}", what,
             listed.size(), x);
  const std::vector<int> axes = DistinctAxes(op, listed, x.shape.rank(), what, check);
  const std::vector<int64_t> steps = ByteStrides(x.shape, 1);
  std::vector<int64_t> dims;
  for (const int axis : axes) {
    dims.push_back(x.shape[axis]);
    plan.loops.push_back({x.shape[axis], steps[static_cast<size_t>(axis)]});
  }
  plan.outputs = {{x.dtype, Shape(std::move(dims))}};
  return plan;
}

// ---- BroadcastTo, Expand, Tile ----

// `shape` with 1s in front up to `rank`.
Shape Padded(const Shape& shape, int rank) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max(0, rank - shape.rank())), 1);
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return Shape(std::move(dims));
}

// BroadcastTo: -1 keeps the dimension of x. Expand: so does 1, and x may have the higher rank.
template <bool kExpand>
CopyPlan PlanBroadcast(const OpContext& op, Check& check) {
  CopyPlan plan = CopyOf(op, check);
  const Shape wanted(check.Take(op.Ints("shape")));
  const TensorType& x = op.in("x");
  Shape y = wanted;
  if (kExpand) y = Padded(y, x.shape.rank());
  const Shape from = Padded(x.shape, y.rank());
  const std::vector<int64_t> steps = ByteStrides(from, 1);
  bool fits = from.rank() == y.rank();
  for (int i = 0; fits && i < y.rank(); ++i) {
    if (y[i] == -1 || (kExpand && y[i] == 1)) y[i] = from[i];
    fits = y[i] >= 0 && (from[i] == 1 || from[i] == y[i]);
    plan.loops.push_back({y[i], from[i] == 1 ? 0 : steps[static_cast<size_t>(i)]});
  }
  check.That(fits, "x is {} and cannot be broadcast to {}", x, wanted);
  plan.outputs = {{x.dtype, std::move(y)}};
  return plan;
}

// Each dimension becomes two loops: over the repetitions, and over the elements.
CopyPlan PlanTile(const OpContext& op, Check& check) {
  CopyPlan plan = CopyOf(op, check);
  const Shape listed(check.Take(op.Ints("multiples")));
  const TensorType& x = op.in("x");
  const int rank = std::max(x.shape.rank(), listed.rank());
  const Shape from = Padded(x.shape, rank), multiples = Padded(listed, rank);
  const std::vector<int64_t> steps = ByteStrides(from, 1);
  Shape y = from;
  for (int i = 0; i < rank; ++i) {
    check.That(multiples[i] >= 0 && !__builtin_mul_overflow(y[i], multiples[i], &y[i]),
               "x is {} and cannot be repeated {} times", x, multiples);
    plan.loops.push_back({multiples[i], 0});
    plan.loops.push_back({from[i], steps[static_cast<size_t>(i)]});
  }
  plan.outputs = {{x.dtype, std::move(y)}};
  return plan;
}

// ---- AsStrided ----

// Strides and offsets count elements. A view must lie inside of its buffer.
struct View {
  Shape size;
  std::vector<int64_t> stride;
  int64_t offset = 0;
};

// First and last element that the view touches lie in [0, elements).
bool LiesInside(const View& view, int64_t elements) {
  if (!view.size.is_static() || !view.size.Check().ok()) return false;
  if (view.size.elements() == 0) return true;
  __extension__ __int128 low = view.offset, high = view.offset;
  for (int d = 0; d < view.size.rank(); ++d) {
    __extension__ const __int128 reach =
        static_cast<__int128>(view.size[d] - 1) * view.stride[static_cast<size_t>(d)];
    (reach < 0 ? low : high) += reach;
  }
  return low >= 0 && high < elements;
}

// The view that three inputs make, whose names begin with `prefix`.
View ViewOf(const OpContext& op, std::string_view port, const std::string& prefix, Check& check) {
  const View view = {Shape(check.Take(op.Ints(prefix + "size"))),
                     check.Take(op.Ints(prefix + "stride")),
                     check.Take(op.Int(prefix + "storage_offset"))};
  const TensorType& buffer = op.in(port);
  check.That(
      view.stride.size() == view.size.dims().size() && LiesInside(view, buffer.shape.elements()),
      "a view of size {} with strides {} from element {} does not lie inside \"{}\", which "
      "is {}",
      view.size, Shape(view.stride), view.offset, port, buffer);
  return view;
}

CopyPlan PlanAsStrided(const OpContext& op, Check& check) {
  CopyPlan plan = CopyOf(op, check);
  View view = ViewOf(op, "x", "", check);
  if (!check.ok()) return {};
  for (size_t d = 0; d < view.stride.size(); ++d) {
    plan.loops.push_back({view.size.dims()[d], view.stride[d]});
  }
  plan.first = view.offset;
  plan.outputs = {{op.in("x").dtype, std::move(view.size)}};
  return plan;
}

// ---- ViewCopy ----

// A copy between a view and its elements side by side.
struct ViewSide {
  StridedCopy copy;
  int64_t first = 0;  // byte of the buffer where the view begins
};

// The elements go into the view, or come from it.
ViewSide SideOf(const View& view, size_t element, bool into) {
  const auto bytes = static_cast<int64_t>(element);
  const std::vector<int64_t> packed = ByteStrides(view.size, element);
  std::vector<CopyAxis> axes;
  for (size_t d = 0; d < packed.size(); ++d) {
    const int64_t extent = view.size.dims()[d];
    const int64_t stride = extent > 1 ? view.stride[d] * bytes : 0;
    axes.push_back(into ? CopyAxis{extent, packed[d], stride}
                        : CopyAxis{extent, stride, packed[d]});
  }
  return {StridedCopy(axes, element), view.size.elements() == 0 ? 0 : view.offset * bytes};
}

struct ViewCopyPlan : Planned {
  int src = 0;
  ViewSide from, to;
  Workspace<std::byte> room;
};

ViewCopyPlan PlanViewCopy(const OpContext& op, Check& check) {
  const TensorType& dst = op.in("dst");
  const size_t element = check.Take(ElementBytes(op, dst.dtype));
  check.SameType("src", "dst");
  const View to = ViewOf(op, "dst", "dst_", check);
  const View from = ViewOf(op, "src", "src_", check);
  check.That(to.size == from.size, "dst_size {} and src_size {} differ", to.size, from.size);
  if (!check.ok()) return {};
  ViewCopyPlan plan;
  plan.src = op.slot("src");
  plan.from = SideOf(from, element, false);
  plan.to = SideOf(to, element, true);
  plan.room = plan.scratch.Take<std::byte>(to.size.elements() * static_cast<int64_t>(element));
  plan.outputs = {dst};
  return plan;
}

// Element by element in C order, because the views may overlap themselves; src may even be dst, so
// it is copied first.
Status RunViewCopy(const ViewCopyPlan& plan, const KernelArgs& args) {
  std::byte* room = plan.room(args);
  plan.from.copy.Run(static_cast<const std::byte*>(args.in[plan.src]) + plan.from.first, room);
  plan.to.copy.Run(room, static_cast<std::byte*>(args.out[0]) + plan.to.first);
  return Status();
}

}  // namespace

void RegisterStridedOps(OpRegistry& registry) {
  registry.Add(
      DefineCopy<PlanTranspose>("Transpose(x, perm) -> y", {"perm"}, "x[..] -> y[..^perm]"));
  registry.Add(DefineCopy<PlanTranspose>("Permute(x; order=[0]) -> y", {}, "x[..] -> y[..^order]"));
  const Axes broadcast = "x[..], shape[#y] -> y[..]";
  registry.Add(
      DefineCopy<PlanBroadcast<false>>("BroadcastTo(x, shape) -> y", {"shape"}, broadcast));
  registry.Add(DefineCopy<PlanBroadcast<true>>("Expand(x, shape) -> y", {"shape"}, broadcast));
  registry.Add(DefineCopy<PlanTile>("Tile(x, multiples) -> y", {"multiples"}, "x[..~] -> y[..]"));
  registry.Add(DefineCopy<PlanAsStrided>("AsStrided(x, size, stride, storage_offset) -> y",
                                         {"size", "stride", "storage_offset"}));
  registry.Add(Define<PlanViewCopy, RunViewCopy>(
      "ViewCopy(dst, dst_size, dst_stride, dst_storage_offset, src, src_size, src_stride, "
      "src_storage_offset) -> dst",
      {.in_place = {{0, 0}},
       .value_inputs = {"dst_size", "dst_stride", "dst_storage_offset", "src_size", "src_stride",
                        "src_storage_offset"}}));
}

}  // namespace npumesh
