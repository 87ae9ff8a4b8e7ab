// AsStrided and ViewCopy: tensors as views with strides into a flat buffer.
//
// Strides and offsets count elements. A view must lie inside of its buffer.
#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/shape/family.h"
#include "graph/ops/shape/shape_plan.h"

namespace npumesh {
namespace {

struct View {
  Shape size;
  std::vector<int64_t> stride;
  int64_t offset = 0;
};

// Names of the three inputs that make a view.
struct ViewPorts {
  std::string_view size, stride, offset;
};

constexpr ViewPorts kOnly = {"size", "stride", "storage_offset"};
constexpr ViewPorts kDst = {"dst_size", "dst_stride", "dst_storage_offset"};
constexpr ViewPorts kSrc = {"src_size", "src_stride", "src_storage_offset"};

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

View ViewOf(const OpContext& op, std::string_view port, const ViewPorts& names, Check& check) {
  const View view = {Shape(check.Take(op.Ints(names.size))), check.Take(op.Ints(names.stride)),
                     check.Take(op.Int(names.offset))};
  const TensorType& buffer = op.in(port);
  check.That(
      view.stride.size() == view.size.dims().size() && LiesInside(view, buffer.shape.elements()),
      "a view of size {} with strides {} from element {} does not lie inside \"{}\", which "
      "is {}",
      view.size, Shape(view.stride), view.offset, port, buffer);
  return view;
}

CopyPlan PlanAsStrided(const OpContext& op, Check& check) {
  CopyPlan plan = CopyOf(op, "x", check);
  View view = ViewOf(op, "x", kOnly, check);
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
  const View to = ViewOf(op, "dst", kDst, check), from = ViewOf(op, "src", kSrc, check);
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
