// Gradients of normalisation by channel: BatchNormGradV3, BNTrainingUpdateGrad,
// BN3DTrainingUpdateGrad and BNTrainingReduceGrad. Ops reference 5.14 and 5.19.
#include <algorithm>

#include "graph/ops/image_layout.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/norm_view.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

// The first two inputs are an incoming gradient and x, the others have an entry for each channel.
Result<NormView> ViewOf(const OpContext& op) {
  const Shape& x = op.in(1).shape;
  const std::vector<PortSpec>& ports = op.schema().inputs;
  if (x.rank() < 2) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected two dimensions or more",
                 op.Who(), ports[1].name, x.ToString());
  }
  bool last = true;
  if (x.rank() > 2) {
    NPUMESH_ASSIGN_OR_RETURN(last, ChannelsLast(op, 1, "NCHW"));
  }
  const NormView view = ChannelView(x, last);
  NPUMESH_RETURN_IF_ERROR(ExpectSameShape(op, ports[0].name, ports[1].name));
  for (size_t i = 0; i < ports.size(); ++i) {
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, ports[i].name));
    if (i > 1) NPUMESH_RETURN_IF_ERROR(ExpectCount(op, ports[i].name, view.params, "channel"));
  }
  return view;
}

// ---- BatchNormGradV3 ----

Status InferBatchNormGrad(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ViewOf(op).status());
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("dy").dtype, op.in("x").shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, op.in("weight").shape));
  return SetOutput(op, 2, DataType::kFloat, op.in("weight").shape);
}

// Inputs dy, x, weight, running mean and variance, saved mean and rstd. In inference the statistics
// are constants, and dx lacks the terms that come through them.
Result<std::unique_ptr<Kernel>> MakeBatchNormGrad(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOf(op));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return MakeRealKernel(
      op,
      [=, training = op.attr_bool("is_training"), rstd = Reals(static_cast<size_t>(view.params)),
       room = Reals(2 * static_cast<size_t>(view.params))](RealTensors& t) mutable {
        if (training) {
          NormGradient(view, {t.in[0], t.in[1], t.in[5], t.in[6], t.in[2]}, &t.out[0], &t.out[1],
                       &t.out[2], &room);
          return Status();
        }
        FindRstd(t.in[4], epsilon, &rstd);
        NormGradient(view, {t.in[0], t.in[1], t.in[3], rstd, t.in[2]}, nullptr, &t.out[1],
                     &t.out[2], &room);
        view.ForEach(
            [&](size_t e, size_t, size_t p) { t.out[0][e] = t.in[0][e] * t.in[2][p] * rstd[p]; });
        return Status();
      });
}

// ---- the same in two steps ----

Status InferUpdateGrad(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ViewOf(op).status());
  const Shape& channels = op.in("batch_mean").shape;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, DataType::kFloat, channels));
  return SetOutput(op, 1, DataType::kFloat, channels);
}

Result<std::unique_ptr<Kernel>> MakeUpdateGrad(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOf(op));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return MakeRealKernel(
      op, [=, none = Reals(), rstd = Reals(static_cast<size_t>(view.params)),
           room = Reals(2 * static_cast<size_t>(view.params))](RealTensors& t) mutable {
        FindRstd(t.in[3], epsilon, &rstd);
        NormGradient(view, {t.in[0], t.in[1], t.in[2], rstd, none}, nullptr, &t.out[0], &t.out[1],
                     &room);
        return Status();
      });
}

Status InferReduceGrad(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ViewOf(op).status());
  return SetOutput(op, 0, op.in("grads").dtype, op.in("grads").shape);
}

// Inputs grads, x, diff_scale, diff_offset, scale, batch mean and variance.
Result<std::unique_ptr<Kernel>> MakeReduceGrad(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOf(op));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return MakeRealKernel(
      op, [=, rstd = Reals(static_cast<size_t>(view.params))](RealTensors& t) mutable {
        FindRstd(t.in[6], epsilon, &rstd);
        view.ForEach([&](size_t e, size_t, size_t p) {
          const double normalised = (t.in[1][e] - t.in[5][p]) * rstd[p];
          const double through = (t.in[3][p] + normalised * t.in[2][p]) / view.count();
          t.out[0][e] = t.in[4][p] * rstd[p] * (t.in[0][e] - through);
        });
        return Status();
      });
}

}  // namespace

void RegisterBatchNormGradients(OpRegistry& registry) {
  const AttrSpec epsilon = {"epsilon", AttrValue::Float(1e-4f)};
  registry.Add(
      {.schema = {"BatchNormGradV3",
                  {{"dy"},
                   {"x"},
                   {"weight"},
                   {"running_mean"},
                   {"running_var"},
                   {"save_mean"},
                   {"save_rstd"}},
                  {{"dx"}, {"dweight"}, {"dbias"}},
                  {{"is_training", AttrValue::Bool(true)}, {"epsilon", AttrValue::Float(1e-5f)}}},
       .infer = InferBatchNormGrad,
       .make_kernel = MakeBatchNormGrad});
  for (const std::string_view type : {"BNTrainingUpdateGrad", "BN3DTrainingUpdateGrad"}) {
    registry.Add({.schema = {type,
                             {{"grads"}, {"x"}, {"batch_mean"}, {"batch_variance"}},
                             {{"diff_scale"}, {"diff_offset"}},
                             {epsilon}},
                  .infer = InferUpdateGrad,
                  .make_kernel = MakeUpdateGrad});
  }
  registry.Add({.schema = {"BNTrainingReduceGrad",
                           {{"grads"},
                            {"x"},
                            {"diff_scale"},
                            {"diff_offset"},
                            {"scale"},
                            {"batch_mean"},
                            {"batch_variance"}},
                           {{"y"}},
                           {epsilon}},
                .infer = InferReduceGrad,
                .make_kernel = MakeReduceGrad});
}

}  // namespace npumesh
