// TransData: between plain layouts and private formats (blocked_layout.h).
#include <algorithm>
#include <optional>
#include <string_view>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/shape/shape_plan.h"
#include "graph/ops/toolbox/copy/blocked_layout.h"

namespace npumesh {
namespace {

// Between plain layouts it is a copy; with `tensor` it is a conversion.
struct TransDataPlan : CopyPlan {
  std::optional<BlockedTensor> tensor;
  Direction direction = Direction::kToPrivate;
  size_t element = 0;
};

// ND of four dimensions is NCHW.
bool HaveEqualBytes(Layout a, Layout b) {
  const auto image = [](Layout layout) { return layout == Layout::kNd ? Layout::kNchw : layout; };
  return image(a) == image(b);
}

LayoutSpec SpecOf(const OpContext& op, std::string_view attr, Check& check) {
  const std::string name = op.attr_string(attr);
  const std::optional<LayoutSpec> spec = LayoutSpecOf(name);
  check.Supported(spec.has_value(),
                  "{} is \"{}\", expected ND, NCHW, NHWC, HWCN, FRACTAL_NZ, NC1HWC0 or FRACTAL_Z",
                  attr, name);
  return spec.value_or(LayoutSpec());
}

// Groups of a FRACTAL_Z: the attribute, or the sub-format of the private side.
int64_t GroupsOf(const OpContext& op, bool to_private) {
  const int64_t sub = op.attr_int(to_private ? "dst_subformat" : "src_subformat");
  return std::max({int64_t{1}, op.attr_int("groups"), sub});
}

// The four dimensions of `plain`.
std::string_view AxesOf(Layout plain) {
  if (plain == Layout::kNhwc) return "NHWC";
  return plain == Layout::kHwcn ? "HWCN" : "NCHW";
}

std::optional<Shape> OriginShape(const TensorDesc& desc) {
  const auto found = desc.attrs.find("origin_shape");
  const auto* dims = found == desc.attrs.end() ? nullptr : found->second.get<ListAttr>();
  if (dims == nullptr || dims->i.empty()) return std::nullopt;
  return Shape(dims->i);
}

// The tensor that is stored in slot 0. The storage does not say how much of it is padding: a
// descriptor must; none when it does not.
std::optional<BlockedTensor> StoredTensor(const OpContext& op, const LayoutSpec& blocked,
                                          const LayoutSpec& plain, int64_t groups) {
  const TensorType& storage = op.in(0);
  const TensorDesc &out = op.node().output_descs[0], &in = op.node().input_descs[0];
  for (const std::optional<Shape>& shape : {out.shape, OriginShape(out), OriginShape(in)}) {
    if (!shape || !shape->is_static() || shape->rank() == 0) continue;
    Result<BlockedTensor> tensor =
        BlockedTensor::Create(plain, *shape, blocked, storage.dtype, groups);
    if (tensor.ok() && tensor->storage_shape() == storage.shape) return std::move(tensor).value();
  }
  return std::nullopt;
}

TransDataPlan PlanTransData(const OpContext& op, Check& check) {
  const auto& [dtype, shape] = op.in(0);
  TransDataPlan plan;
  plan.element = check.Take(ElementBytes(op, dtype));
  const LayoutSpec from = SpecOf(op, "src_format", check), to = SpecOf(op, "dst_format", check);
  check.Supported(HaveEqualBytes(from.layout, to.layout) || !from.is_private() || !to.is_private(),
                  "from {} to {}; expected a plain layout on one side",
                  op.attr_string("src_format"), op.attr_string("dst_format"));
  if (!check.ok()) return {};
  plan.outputs = {op.in(0)};
  if (HaveEqualBytes(from.layout, to.layout)) {
    plan.loops = {{shape.elements(), 1}};
    return plan;
  }
  const int64_t groups = GroupsOf(op, to.is_private());
  if (from.is_private()) {
    plan.tensor = StoredTensor(op, from, to, groups);
    plan.direction = Direction::kToPlain;
    check.Supported(
        plan.tensor.has_value(),
        "\"src\" is {} in {}; neither the shape of \"dst\" nor an origin_shape says what "
        "that is without padding",
        shape, op.attr_string("src_format"));
    if (check.ok()) plan.outputs[0].shape = plan.tensor->plain_shape();
    return plan;
  }
  if (to.is_private()) {
    Result<BlockedTensor> tensor = BlockedTensor::Create(from, shape, to, dtype, groups);
    check.Keep(tensor.status().WithContext(op.Who()));
    if (!check.ok()) return {};
    plan.tensor = std::move(tensor).value();
    plan.outputs[0].shape = plan.tensor->storage_shape();
    return plan;
  }
  check.That(shape.rank() == 4, "\"src\" is {}, expected four dimensions", shape);
  if (!check.ok()) return {};
  const std::vector<int64_t> steps = ByteStrides(shape, 1);
  plan.outputs[0].shape = {};
  for (const char axis : AxesOf(to.layout)) {
    const size_t at = AxesOf(from.layout).find(axis);
    plan.outputs[0].shape.mutable_dims().push_back(shape.dims()[at]);
    plan.loops.push_back({shape.dims()[at], steps[at]});
  }
  return plan;
}

Status RunTransData(const TransDataPlan& plan, const KernelArgs& args) {
  if (!plan.tensor) return RunCopy(plan, args);
  ConvertLayout(*plan.tensor, plan.direction, plan.element, args.in[0], args.out[0]);
  return Status();
}

}  // namespace

void RegisterTransDataOps(OpRegistry& registry) {
  registry.Add(Define<PlanTransData, RunTransData, PrepareCopy>(
      "TransData(src; src_format:string, dst_format:string, src_subformat=0, dst_subformat=0, "
      "groups=1) -> dst"));
}

}  // namespace npumesh
