// GroupNorm, GroupNormV2, GroupNormSilu and GroupNormGrad. Ops reference 5.7 and 5.19.
#include <cmath>

#include "graph/ops/image_layout.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/norm_view.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

struct GroupRow {
  std::string_view type;
  std::string_view third;  // output
  float epsilon;
  std::string_view layout;  // data_format's default; empty: no such attribute, NCHW
  bool silu;
};

constexpr GroupRow kRows[] = {
    {"GroupNorm", "variance", 1e-4f, "NHWC", false},
    {"GroupNormV2", "rstd", 1e-5f, "NHWC", false},
    {"GroupNormSilu", "variance", 1e-4f, "", true},
};

// The layout is that of the graph's hints where there are some, as converters leave the attribute
// at its default; matrices have none.
Result<NormView> ViewOf(const OpContext& op, bool has_format) {
  const int slot = op.slot("x");
  const Shape& x = op.in(slot).shape;
  bool last = false;
  if (has_format && x.rank() > 2) {
    NPUMESH_ASSIGN_OR_RETURN(last, ChannelsLast(op, slot, op.attr_string("data_format")));
  }
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, GroupView(op, x, last, op.attr_int("num_groups")));
  for (const std::string_view port : {"gamma", "beta"}) {
    if (op.schema().type == "GroupNormGrad" && port == "beta") continue;
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port));
    NPUMESH_RETURN_IF_ERROR(ExpectCount(op, port, view.params, "channel"));
  }
  return view;
}

Status InferGroupNorm(OpContext& op, const GroupRow& row) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "x"));
  NPUMESH_RETURN_IF_ERROR(ViewOf(op, !row.layout.empty()).status());
  const Shape statistics = {x.shape[0], op.attr_int("num_groups")};
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, x.dtype, x.shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, x.dtype, statistics));
  return SetOutput(op, 2, x.dtype, statistics);
}

Result<std::unique_ptr<Kernel>> MakeGroupNorm(const OpContext& op, const GroupRow& row) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOf(op, !row.layout.empty()));
  const auto epsilon = static_cast<double>(op.attr_float("eps"));
  const bool gives_rstd = row.third == "rstd";
  return MakeRealKernel(
      op, [=, silu = row.silu && op.attr_bool("activate_silu"),
           rstd = Reals(static_cast<size_t>(view.statistics))](RealTensors& t) mutable {
        Reals &y = t.out[0], &mean = t.out[1], &third = t.out[2];
        FindMoments(view, t.in[0], &mean, &third);
        FindRstd(third, epsilon, &rstd);
        Normalise(view, t.in[0], mean, rstd, t.in[1], t.in[2], &y);
        for (size_t i = 0; silu && i < y.size(); ++i) y[i] /= 1 + std::exp(-y[i]);
        if (gives_rstd) third = rstd;
        return Status();
      });
}

Status InferGradient(OpContext& op) {
  for (const PortSpec& port : op.schema().inputs) {
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port.name));
  }
  NPUMESH_RETURN_IF_ERROR(ExpectSameShape(op, "dy", "x"));
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOf(op, true));
  for (const std::string_view port : {"mean", "rstd"}) {
    NPUMESH_RETURN_IF_ERROR(ExpectCount(op, port, view.statistics, "group of an image"));
  }
  const TensorType& gamma = op.in("gamma");
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("dy").dtype, op.in("x").shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, gamma.dtype, gamma.shape));
  return SetOutput(op, 2, gamma.dtype, gamma.shape);
}

// Outputs that are not required stay zero.
Result<std::unique_ptr<Kernel>> MakeGradient(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOf(op, true));
  return MakeRealKernel(
      op, [=, dx = op.attr_bool("dx_is_require"), dgamma = op.attr_bool("dgamma_is_require"),
           dbeta = op.attr_bool("dbeta_is_require"),
           room = Reals(2 * static_cast<size_t>(view.statistics))](RealTensors& t) mutable {
        NormGradient(view, {t.in[0], t.in[3], t.in[1], t.in[2], t.in[4]}, dx ? &t.out[0] : nullptr,
                     dgamma ? &t.out[1] : nullptr, dbeta ? &t.out[2] : nullptr, &room);
        return Status();
      });
}

}  // namespace

void RegisterGroupNormOps(OpRegistry& registry) {
  for (const GroupRow& row : kRows) {
    const PortKind kind = row.silu ? PortKind::kOptional : PortKind::kRequired;
    OpSchema schema = {row.type,
                       {{"x"}, {"gamma", kind}, {"beta", kind}},
                       {{"y"}, {"mean"}, {row.third}},
                       {{"num_groups", Required::kInt}, {"eps", AttrValue::Float(row.epsilon)}}};
    if (row.silu) schema.attrs.push_back({"activate_silu", AttrValue::Bool(true)});
    if (!row.layout.empty()) {
      schema.attrs.push_back({"data_format", AttrValue::String(std::string(row.layout))});
      schema.attrs.push_back({"is_training", AttrValue::Bool(true)});
    }
    registry.Add({.schema = std::move(schema),
                  .infer = [&row](OpContext& op) { return InferGroupNorm(op, row); },
                  .make_kernel = [&row](const OpContext& op) { return MakeGroupNorm(op, row); }});
  }
  registry.Add({.schema = {"GroupNormGrad",
                           {{"dy"}, {"mean"}, {"rstd"}, {"x"}, {"gamma"}},
                           {{"dx"}, {"dgamma"}, {"dbeta"}},
                           {{"num_groups", Required::kInt},
                            {"data_format", AttrValue::String("NCHW")},
                            {"dx_is_require", AttrValue::Bool(true)},
                            {"dgamma_is_require", AttrValue::Bool(true)},
                            {"dbeta_is_require", AttrValue::Bool(true)}}},
                .infer = InferGradient,
                .make_kernel = MakeGradient});
}

}  // namespace npumesh
