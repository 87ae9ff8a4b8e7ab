// LayerNorm, LayerNormV3, AddLayerNorm, DeepNorm, AddRmsNormCast, and the gradients LayerNormGradV3
// and RmsNormGrad. Ops reference 5.7 and 5.14. LayerNormV4, RmsNorm and AddRmsNorm, which models
// are full of, are in norm.cc.
#include <cmath>

#include "graph/ops/cast.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/norm_view.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

// x with dimensions [axis, rank) 1: the shape of means and the like.
Shape StatisticsShape(const Shape& x, int axis) {
  Shape shape = x;
  for (int i = axis; i < x.rank(); ++i) shape[i] = 1;
  return shape;
}

Status ExpectAllReal(const OpContext& op) {
  for (const PortSpec& port : op.schema().inputs) {
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port.name));
  }
  return Status();
}

// ---- LayerNorm, LayerNormV3 ----

Result<NormView> ViewByAxes(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  NPUMESH_ASSIGN_OR_RETURN(const int axis,
                           AxisOf(op, op.attr_int("begin_norm_axis"), x.rank(), "begin_norm_axis"));
  NPUMESH_ASSIGN_OR_RETURN(const int params, AxisOf(op, op.attr_int("begin_params_axis"), x.rank(),
                                                    "begin_params_axis"));
  const NormView view = LayerView(x, axis, ElementsBetween(x, params, x.rank()));
  for (const std::string_view port : {"gamma", "beta"}) {
    NPUMESH_RETURN_IF_ERROR(ExpectCount(op, port, view.params, "place behind begin_params_axis"));
  }
  return view;
}

Status InferByAxes(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectAllReal(op));
  NPUMESH_RETURN_IF_ERROR(ViewByAxes(op).status());
  const TensorType& x = op.in("x");
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("begin_norm_axis"),
                                                  x.shape.rank(), "begin_norm_axis"));
  const Shape statistics = StatisticsShape(x.shape, axis);
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, x.dtype, x.shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, x.dtype, statistics));
  return SetOutput(op, 2, x.dtype, statistics);
}

// The third output is 1 / sqrt(variance + epsilon), of LayerNorm the variance.
Result<std::unique_ptr<Kernel>> MakeByAxes(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewByAxes(op));
  const bool gives_variance = op.schema().type == "LayerNorm";
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return MakeRealKernel(
      op, [=, variance = Reals(static_cast<size_t>(view.statistics)),
           rstd = Reals(static_cast<size_t>(view.statistics))](RealTensors& t) mutable {
        FindMoments(view, t.in[0], &t.out[1], &variance);
        FindRstd(variance, epsilon, &rstd);
        Normalise(view, t.in[0], t.out[1], rstd, t.in[1], t.in[2], &t.out[0]);
        t.out[2] = gives_variance ? variance : rstd;
        return Status();
      });
}

// ---- gradients ----

// x normalised over as many last dimensions as gamma has.
Result<NormView> GradientView(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  const Shape& gamma = op.in("gamma").shape;
  const int axis = x.rank() - gamma.rank();
  NPUMESH_RETURN_IF_ERROR(ExpectSameShape(op, "dy", "x"));
  bool fits = axis >= 0 && gamma.rank() > 0;
  for (int i = 0; fits && i < gamma.rank(); ++i) fits = gamma[i] == x[axis + i];
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {}, which does not end with the shape of gamma, {}", op.Who(),
                 x.ToString(), gamma.ToString());
  }
  const NormView view = LayerView(x, axis, gamma.elements());
  NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "rstd", view.statistics, "row of x"));
  return view;
}

Status InferGradient(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectAllReal(op));
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, GradientView(op));
  const bool centred = op.schema().type == "LayerNormGradV3";
  if (centred) NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "mean", view.statistics, "row of x"));
  const Shape& gamma = op.in("gamma").shape;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("dy").dtype, op.in("x").shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, gamma));
  return centred ? SetOutput(op, 2, DataType::kFloat, gamma) : Status();
}

Result<std::unique_ptr<Kernel>> MakeGradient(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, GradientView(op));
  const auto slot = [&](std::string_view port) { return static_cast<size_t>(op.slot(port)); };
  const bool centred = op.schema().type == "LayerNormGradV3";
  return MakeRealKernel(
      op, [=, x = slot("x"), rstd = slot("rstd"), gamma = slot("gamma"),
           mean = centred ? slot("mean") : 0, none = Reals(),
           room = Reals(2 * static_cast<size_t>(view.statistics))](RealTensors& t) mutable {
        NormGradient(view, {t.in[0], t.in[x], centred ? t.in[mean] : none, t.in[rstd], t.in[gamma]},
                     &t.out[0], &t.out[1], centred ? &t.out[2] : nullptr, &room);
        return Status();
      });
}

// ---- sums that are normalised over the last dimension ----

// Error unless x1 and x2 are alike and the vectors fit the last dimension.
Status CheckSum(const OpContext& op, std::string_view x1, std::string_view x2,
                std::initializer_list<std::string_view> vectors) {
  NPUMESH_RETURN_IF_ERROR(ExpectAllReal(op));
  NPUMESH_RETURN_IF_ERROR(ExpectSameShape(op, x2, x1));
  NPUMESH_RETURN_IF_ERROR(ExpectSameDtype(op, op.slot(x1), op.slot(x2)));
  const Shape& x = op.in(x1).shape;
  if (x.rank() == 0) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" is a scalar, expected rows", op.Who(), x1);
  }
  for (const std::string_view port : vectors) {
    NPUMESH_RETURN_IF_ERROR(ExpectCount(op, port, x[x.rank() - 1], "column"));
  }
  return Status();
}

NormView ViewOfRows(const Shape& x) {
  return LayerView(x, x.rank() - 1, x[x.rank() - 1]);
}

// Outputs y, mean, rstd, x.
Status InferAddLayerNorm(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckSum(op, "x1", "x2", {"gamma", "beta"}));
  const TensorType& x = op.in("x1");
  const int64_t columns = x.shape[x.shape.rank() - 1];
  if (op.has("bias") && op.in("bias").shape != x.shape) {
    NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "bias", columns, "column"));
  }
  const Shape statistics = StatisticsShape(x.shape, x.shape.rank() - 1);
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, x.dtype, x.shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, statistics));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, DataType::kFloat, statistics));
  return SetOutput(op, 3, x.dtype, x.shape);
}

Result<std::unique_ptr<Kernel>> MakeAddLayerNorm(const OpContext& op) {
  const NormView view = ViewOfRows(op.in("x1").shape);
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return MakeRealKernel(op, [=](RealTensors& t) {
    const Reals& bias = t.in[4];
    Reals &sum = t.out[3], &mean = t.out[1], &rstd = t.out[2];
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] = t.in[0][i] + t.in[1][i] + (bias.empty() ? 0.0 : bias[i % bias.size()]);
    }
    FindMoments(view, sum, &mean, &rstd);
    FindRstd(rstd, epsilon, &rstd);
    Normalise(view, sum, mean, rstd, t.in[2], t.in[3], &t.out[0]);
    return Status();
  });
}

// Outputs mean, rstd, y.
Status InferDeepNorm(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckSum(op, "x", "gx", {"beta", "gamma"}));
  const TensorType& x = op.in("x");
  const Shape statistics = StatisticsShape(x.shape, x.shape.rank() - 1);
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, DataType::kFloat, statistics));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, statistics));
  return SetOutput(op, 2, x.dtype, x.shape);
}

Result<std::unique_ptr<Kernel>> MakeDeepNorm(const OpContext& op) {
  const NormView view = ViewOfRows(op.in("x").shape);
  const auto alpha = static_cast<double>(op.attr_float("alpha"));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return MakeRealKernel(op, [=](RealTensors& t) {
    Reals &mean = t.out[0], &rstd = t.out[1], &y = t.out[2];
    for (size_t i = 0; i < y.size(); ++i) y[i] = alpha * t.in[0][i] + t.in[1][i];
    FindMoments(view, y, &mean, &rstd);
    FindRstd(rstd, epsilon, &rstd);
    Normalise(view, y, mean, rstd, t.in[3], t.in[2], &y);
    return Status();
  });
}

// ---- AddRmsNormCast ----

// Rounds values to a type and back.
class Rounding {
 public:
  Rounding(DataType dtype, size_t count)
      : store_(FindConvert(DataType::kDouble, dtype)),
        load_(FindConvert(dtype, DataType::kDouble)),
        room_(count * static_cast<size_t>(BitsOf(dtype)) / 8) {}

  void operator()(Reals* values) {
    store_(values->data(), room_.data(), values->size());
    load_(room_.data(), values->data(), values->size());
  }

 private:
  ConvertFn store_;
  ConvertFn load_;
  std::vector<std::byte> room_;
};

// Outputs y in float32, y, rstd, x.
Status InferAddRmsNormCast(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckSum(op, "x1", "x2", {"gamma"}));
  const TensorType& x = op.in("x1");
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, DataType::kFloat, x.shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, x.dtype, x.shape));
  NPUMESH_RETURN_IF_ERROR(
      SetOutput(op, 2, DataType::kFloat, StatisticsShape(x.shape, x.shape.rank() - 1)));
  return SetOutput(op, 3, x.dtype, x.shape);
}

// Rounds where AddRmsNorm of A2 and A3 does: the sum, and x * rstd before gamma.
Result<std::unique_ptr<Kernel>> MakeAddRmsNormCast(const OpContext& op) {
  const TensorType& type = op.in("x1");
  const NormView view = ViewOfRows(type.shape);
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return MakeRealKernel(op, [=, none = Reals(),
                             round = Rounding(type.dtype, static_cast<size_t>(view.elements))](
                                RealTensors& t) mutable {
    Reals &y = t.out[1], &rstd = t.out[2], &sum = t.out[3];
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = t.in[0][i] + t.in[1][i];
    round(&sum);
    view.ForEach([&](size_t e, size_t s, size_t) { rstd[s] += sum[e] * sum[e] / view.count(); });
    FindRstd(rstd, epsilon, &rstd);
    Normalise(view, sum, none, rstd, none, none, &y);
    round(&y);
    view.ForEach([&](size_t e, size_t, size_t p) { y[e] *= t.in[2][p]; });
    round(&y);
    t.out[0] = y;
    return Status();
  });
}

}  // namespace

void RegisterLayerNormOps(OpRegistry& registry) {
  const auto epsilon = [](float value) { return AttrSpec{"epsilon", AttrValue::Float(value)}; };
  const AttrSpec norm_axis = {"begin_norm_axis", AttrValue::Int(0)};
  const AttrSpec params_axis = {"begin_params_axis", AttrValue::Int(0)};
  registry.Add({.schema = {"LayerNorm",
                           {{"x"}, {"gamma"}, {"beta"}},
                           {{"y"}, {"mean"}, {"variance"}},
                           {norm_axis, params_axis, epsilon(1e-7f)}},
                .infer = InferByAxes,
                .make_kernel = MakeByAxes});
  registry.Add({.schema = {"LayerNormV3",
                           {{"x"}, {"gamma"}, {"beta"}},
                           {{"y"}, {"mean"}, {"rstd"}},
                           {norm_axis, params_axis, epsilon(1e-5f)}},
                .infer = InferByAxes,
                .make_kernel = MakeByAxes});
  registry.Add({.schema = {"LayerNormGradV3",
                           {{"dy"}, {"x"}, {"rstd"}, {"mean"}, {"gamma"}},
                           {{"pd_x"}, {"pd_gamma"}, {"pd_beta"}},
                           {AttrSpec::Only("output_mask", AttrValue::Bools({true, true, true}))}},
                .infer = InferGradient,
                .make_kernel = MakeGradient});
  registry.Add(
      {.schema = {"RmsNormGrad", {{"dy"}, {"x"}, {"rstd"}, {"gamma"}}, {{"dx"}, {"dgamma"}}, {}},
       .infer = InferGradient,
       .make_kernel = MakeGradient});
  registry.Add({.schema = {"AddLayerNorm",
                           {{"x1"}, {"x2"}, {"gamma"}, {"beta"}, {"bias", PortKind::kOptional}},
                           {{"y"}, {"mean"}, {"rstd"}, {"x"}},
                           {epsilon(1e-5f), {"additional_output", AttrValue::Bool(false)}}},
                .infer = InferAddLayerNorm,
                .make_kernel = MakeAddLayerNorm});
  registry.Add({.schema = {"DeepNorm",
                           {{"x"}, {"gx"}, {"beta"}, {"gamma"}},
                           {{"mean"}, {"rstd"}, {"y"}},
                           {{"alpha", AttrValue::Float(0.3f)}, epsilon(1e-6f)}},
                .infer = InferDeepNorm,
                .make_kernel = MakeDeepNorm});
  registry.Add({.schema = {"AddRmsNormCast",
                           {{"x1"}, {"x2"}, {"gamma"}},
                           {{"y1"}, {"y2"}, {"rstd"}, {"x"}},
                           {epsilon(1e-6f)}},
                .infer = InferAddRmsNormCast,
                .make_kernel = MakeAddRmsNormCast});
}

}  // namespace npumesh
