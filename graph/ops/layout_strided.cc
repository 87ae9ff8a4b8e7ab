// AsStrided and ViewCopy: tensors as views with strides into a flat buffer. Ops reference 5.9.
//
// Strides and offsets count elements. A view must lie inside of its buffer.
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/strided_copy.h"

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

Result<View> ViewOf(const OpContext& op, std::string_view port, const ViewPorts& names) {
  View view;
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> size, op.Ints(names.size));
  NPUMESH_ASSIGN_OR_RETURN(view.stride, op.Ints(names.stride));
  NPUMESH_ASSIGN_OR_RETURN(view.offset, op.Int(names.offset));
  view.size = Shape(std::move(size));
  const TensorType& buffer = op.in(port);
  if (view.stride.size() == view.size.dims().size() && LiesInside(view, buffer.shape.elements())) {
    return view;
  }
  return Error(Code::kInvalidArgument,
               "{}: a view of size {} with strides {} from element {} does not lie inside \"{}\", "
               "which is {}",
               op.Who(), view.size.ToString(), Shape(view.stride).ToString(), view.offset, port,
               buffer.ToString());
}

// ---- AsStrided ----

Status InferAsStrided(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, op.in("x").dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const View view, ViewOf(op, "x", kOnly));
  return SetOutput(op, 0, op.in("x").dtype, view.size);
}

Result<std::unique_ptr<Kernel>> MakeAsStrided(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const View view, ViewOf(op, "x", kOnly));
  const auto bytes = static_cast<int64_t>(element);
  const std::vector<int64_t> to = ByteStrides(view.size, element);
  std::vector<CopyAxis> axes;
  for (size_t d = 0; d < to.size(); ++d) {
    axes.push_back({view.size.dims()[d], view.stride[d] * bytes, to[d]});
  }
  const int64_t offset = view.size.elements() == 0 ? 0 : view.offset * bytes;
  return MakeKernel([copy = StridedCopy(axes, element), offset](const KernelArgs& args) {
    copy.Run(static_cast<const std::byte*>(args.in[0]) + offset, args.out[0]);
    return Status();
  });
}

// ---- ViewCopy ----

Status InferViewCopy(OpContext& op) {
  const TensorType& dst = op.in("dst");
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, dst.dtype).status());
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot("dst"), op.slot("src")));
  NPUMESH_ASSIGN_OR_RETURN(const View to, ViewOf(op, "dst", kDst));
  NPUMESH_ASSIGN_OR_RETURN(const View from, ViewOf(op, "src", kSrc));
  if (to.size != from.size) {
    return Error(Code::kInvalidArgument, "{}: dst_size {} and src_size {} differ", op.Who(),
                 to.size.ToString(), from.size.ToString());
  }
  return SetOutput(op, 0, dst.dtype, dst.shape);
}

// Element by element in C order, as the views may overlap themselves; src may even be dst, and is
// copied first then.
Result<std::unique_ptr<Kernel>> MakeViewCopy(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, op.in("dst").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const View to, ViewOf(op, "dst", kDst));
  NPUMESH_ASSIGN_OR_RETURN(const View from, ViewOf(op, "src", kSrc));
  const auto bytes = static_cast<int64_t>(element);
  const std::vector<int64_t> packed = ByteStrides(to.size, element);
  std::vector<CopyAxis> gather, scatter;
  for (size_t d = 0; d < packed.size(); ++d) {
    const int64_t extent = to.size.dims()[d];
    gather.push_back({extent, from.stride[d] * bytes, packed[d]});
    scatter.push_back({extent, packed[d], to.stride[d] * bytes});
  }
  const bool empty = to.size.elements() == 0;
  const int64_t source = empty ? 0 : from.offset * bytes;
  const int64_t target = empty ? 0 : to.offset * bytes;
  const int src = op.slot("src");
  std::vector<std::byte> room(static_cast<size_t>(to.size.elements()) * element);
  return MakeKernel([=, copy_in = StridedCopy(gather, element),
                     copy_out = StridedCopy(scatter, element),
                     room = std::move(room)](const KernelArgs& args) mutable {
    copy_in.Run(static_cast<const std::byte*>(args.in[src]) + source, room.data());
    copy_out.Run(room.data(), static_cast<std::byte*>(args.out[0]) + target);
    return Status();
  });
}

}  // namespace

void RegisterStridedOps(OpRegistry& registry) {
  registry.Add(
      {.schema = {"AsStrided", {{"x"}, {"size"}, {"stride"}, {"storage_offset"}}, {{"y"}}, {}},
       .infer = InferAsStrided,
       .make_kernel = MakeAsStrided,
       .value_inputs = {"size", "stride", "storage_offset"}});
  registry.Add({.schema = {"ViewCopy",
                           {{"dst"},
                            {"dst_size"},
                            {"dst_stride"},
                            {"dst_storage_offset"},
                            {"src"},
                            {"src_size"},
                            {"src_stride"},
                            {"src_storage_offset"}},
                           {{"dst"}},
                           {}},
                .infer = InferViewCopy,
                .make_kernel = MakeViewCopy,
                .in_place = {{0, 0}},
                .value_inputs = {"dst_size", "dst_stride", "dst_storage_offset", "src_size",
                                 "src_stride", "src_storage_offset"}});
}

}  // namespace npumesh
