// TransData: between plain layouts and private formats. Ops reference 5.3; layouts:
// blocked_layout.h.
#include <algorithm>
#include <array>
#include <cstring>

#include "graph/ops/blocked_layout.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/strided_copy.h"

namespace npumesh {
namespace {

struct Conversion {
  LayoutSpec from;
  LayoutSpec to;
  int64_t groups = 1;
  Shape result;

  bool to_private() const { return to.is_private(); }
  // Equal bytes: ND of four dimensions is NCHW.
  bool copies() const {
    const auto plain = [](Layout layout) { return layout == Layout::kNd ? Layout::kNchw : layout; };
    return plain(from.layout) == plain(to.layout);
  }
};

Result<LayoutSpec> SpecOf(const OpContext& op, std::string_view attr) {
  const std::string name = op.attr_string(attr);
  const std::optional<LayoutSpec> spec = LayoutSpecOf(name);
  if (spec) return *spec;
  return Error(Code::kUnsupported,
               "{}: {} is \"{}\", expected ND, NCHW, NHWC, HWCN, FRACTAL_NZ, NC1HWC0 or FRACTAL_Z",
               op.Who(), attr, name);
}

// Groups of a FRACTAL_Z: the attribute, or the sub-format of the private side.
int64_t GroupsOf(const OpContext& op, bool to_private) {
  const int64_t sub = op.attr_int(to_private ? "dst_subformat" : "src_subformat");
  return std::max({int64_t{1}, op.attr_int("groups"), sub});
}

// Where four dimensions of `plain` stand in the order N, C, H, W.
std::array<int, 4> ImageOrder(Layout plain) {
  if (plain == Layout::kNhwc) return {0, 3, 1, 2};
  if (plain == Layout::kHwcn) return {3, 2, 0, 1};
  return {0, 1, 2, 3};
}

// The shape of a plain tensor in another plain layout.
Shape Reordered(const Shape& shape, Layout from, Layout to) {
  std::vector<int64_t> dims(4);
  for (size_t i = 0; i < 4; ++i) {
    dims[static_cast<size_t>(ImageOrder(to)[i])] = shape[ImageOrder(from)[i]];
  }
  return Shape(std::move(dims));
}

std::optional<Shape> OriginShape(const TensorDesc& desc) {
  const auto found = desc.attrs.find("origin_shape");
  const auto* dims = found == desc.attrs.end() ? nullptr : found->second.get<ListAttr>();
  if (dims == nullptr || dims->i.empty()) return std::nullopt;
  return Shape(dims->i);
}

// The storage does not say how much of it is padding: a descriptor must.
Result<Shape> PlainShape(const OpContext& op, const Conversion& conversion) {
  const Shape& storage = op.in(0).shape;
  const TensorDesc& out = op.node().output_descs[0];
  const TensorDesc& in = op.node().input_descs[0];
  for (const std::optional<Shape>& shape : {out.shape, OriginShape(out), OriginShape(in)}) {
    if (!shape || !shape->is_static() || shape->rank() == 0) continue;
    const Result<BlockedTensor> tensor = BlockedTensor::Create(
        conversion.to, *shape, conversion.from, op.in(0).dtype, conversion.groups);
    if (tensor.ok() && tensor->storage_shape() == storage) return *shape;
  }
  return Error(
      Code::kUnsupported,
      "{}: \"src\" is {} in {}; neither the shape of \"dst\" nor an origin_shape says what "
      "that is without padding",
      op.Who(), storage.ToString(), op.attr_string("src_format"));
}

Result<Conversion> PlanOf(const OpContext& op) {
  Conversion conversion;
  NPUMESH_ASSIGN_OR_RETURN(conversion.from, SpecOf(op, "src_format"));
  NPUMESH_ASSIGN_OR_RETURN(conversion.to, SpecOf(op, "dst_format"));
  conversion.groups = GroupsOf(op, conversion.to_private());
  const Shape& shape = op.in(0).shape;
  conversion.result = shape;
  if (conversion.copies()) return conversion;
  if (conversion.from.is_private() && conversion.to_private()) {
    return Error(Code::kUnsupported, "{}: from {} to {}; expected a plain layout on one side",
                 op.Who(), op.attr_string("src_format"), op.attr_string("dst_format"));
  }
  if (conversion.from.is_private()) {
    NPUMESH_ASSIGN_OR_RETURN(conversion.result, PlainShape(op, conversion));
    return conversion;
  }
  if (!conversion.to_private()) {
    if (shape.rank() != 4) {
      return Error(Code::kInvalidArgument, "{}: \"src\" is {}, expected four dimensions", op.Who(),
                   shape.ToString());
    }
    conversion.result = Reordered(shape, conversion.from.layout, conversion.to.layout);
    return conversion;
  }
  const Result<BlockedTensor> tensor = BlockedTensor::Create(conversion.from, shape, conversion.to,
                                                             op.in(0).dtype, conversion.groups);
  if (!tensor.ok()) return tensor.status().WithContext(op.Who());
  conversion.result = tensor->storage_shape();
  return conversion;
}

Status InferTransData(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, op.in(0).dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(Conversion conversion, PlanOf(op));
  return SetOutput(op, 0, op.in(0).dtype, std::move(conversion.result));
}

// Between plain layouts of four dimensions.
std::unique_ptr<Kernel> ReorderKernel(const Conversion& conversion, const Shape& from_shape,
                                      size_t bytes) {
  const std::vector<int64_t> from = ByteStrides(from_shape, bytes);
  const std::vector<int64_t> to = ByteStrides(conversion.result, bytes);
  std::vector<CopyAxis> axes;
  for (size_t i = 0; i < 4; ++i) {  // N, C, H, W
    const int source = ImageOrder(conversion.from.layout)[i];
    const int target = ImageOrder(conversion.to.layout)[i];
    axes.push_back(
        {from_shape[source], from[static_cast<size_t>(source)], to[static_cast<size_t>(target)]});
  }
  return MakeKernel([copy = StridedCopy(axes, bytes)](const KernelArgs& args) {
    copy.Run(args.in[0], args.out[0]);
    return Status();
  });
}

Result<std::unique_ptr<Kernel>> MakeTransData(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Conversion conversion, PlanOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const size_t bytes, ElementBytes(op, op.in(0).dtype));
  if (conversion.copies()) {
    return MakeKernel([total = op.in(0).bytes()](const KernelArgs& args) {
      if (total > 0) std::memcpy(args.out[0], args.in[0], total);
      return Status();
    });
  }
  const bool to_private = conversion.to_private();
  if (!to_private && !conversion.from.is_private()) {
    return ReorderKernel(conversion, op.in(0).shape, bytes);
  }
  NPUMESH_ASSIGN_OR_RETURN(BlockedTensor tensor,
                           BlockedTensor::Create(to_private ? conversion.from : conversion.to,
                                                 to_private ? op.in(0).shape : conversion.result,
                                                 to_private ? conversion.to : conversion.from,
                                                 op.in(0).dtype, conversion.groups));
  const Direction direction = to_private ? Direction::kToPrivate : Direction::kToPlain;
  return MakeKernel([tensor = std::move(tensor), direction, bytes](const KernelArgs& args) {
    ConvertLayout(tensor, direction, bytes, args.in[0], args.out[0]);
    return Status();
  });
}

}  // namespace

void RegisterTransDataOps(OpRegistry& registry) {
  registry.Add({.schema = {"TransData",
                           {{"src"}},
                           {{"dst"}},
                           {{"src_format", Required::kString},
                            {"dst_format", Required::kString},
                            {"src_subformat", AttrValue::Int(0)},
                            {"dst_subformat", AttrValue::Int(0)},
                            {"groups", AttrValue::Int(1)}}},
                .infer = InferTransData,
                .make_kernel = MakeTransData});
}

}  // namespace npumesh
