// Normalisation by channel over a batch, in training: BatchNormV3 and BatchNorm, the pieces
// BNTrainingReduce and BNTrainingUpdate that do the same in two steps, SyncBatchNormGatherStats,
// and the gradients. Ops reference 5.7, 5.14 and 5.19.
//
// Running variances take in the unbiased variance of the batch (n / (n - 1); a batch of one element
// has none and counts as 0).
#include <algorithm>

#include "graph/ops/image_layout.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/norm_view.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

// Input x by channels; the others have an entry for each. Matrices have channels last, other
// tensors where layout or `fallback` says.
Result<NormView> ViewOf(const OpContext& op, std::string_view fallback) {
  const Shape& x = op.in(0).shape;
  if (x.rank() < 2) {
    return Error(Code::kInvalidArgument, "{}: x is {}, expected two dimensions or more", op.Who(),
                 x.ToString());
  }
  bool last = true;
  if (x.rank() > 2) {
    NPUMESH_ASSIGN_OR_RETURN(last, ChannelsLast(op, 0, fallback));
  }
  const NormView view = ChannelView(x, last);
  for (const PortSpec& port : op.schema().inputs) {
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port.name));
    if (port.name == "x") continue;
    NPUMESH_RETURN_IF_ERROR(ExpectCount(op, port.name, view.params, "channel"));
  }
  return view;
}

double UnbiasedFactor(double count) {
  return count > 1 ? count / (count - 1) : 0.0;
}

// old * (1 - momentum) + fresh * factor * momentum, by entry.
void Advance(const Reals& old, const Reals& fresh, double factor, double momentum, Reals* to) {
  for (size_t i = 0; i < to->size(); ++i) {
    (*to)[i] = (1 - momentum) * old[i] + momentum * factor * fresh[i];
  }
}

Status SetLike(OpContext& op, int output, std::string_view port) {
  return SetOutput(op, output, op.in(port).dtype, op.in(port).shape);
}

// ---- BatchNormV3 ----

Result<NormView> ViewOfBatchNormV3(const OpContext& op) {
  return ViewOf(op, "NCHW");
}

Status InferBatchNormV3(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOfBatchNormV3(op));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, 0, "x"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, 1, "running_mean"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, 2, "running_var"));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 3, DataType::kFloat, {view.params}));
  return SetOutput(op, 4, DataType::kFloat, {view.params});
}

// Inputs x, weight, bias, running mean and variance. In inference the saved statistics are those
// that were used.
Result<std::unique_ptr<Kernel>> MakeBatchNormV3(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOfBatchNormV3(op));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  const auto momentum = static_cast<double>(op.attr_float("momentum"));
  return MakeRealKernel(op, [=, training = op.attr_bool("is_training")](RealTensors& t) {
    Reals &mean = t.out[3], &rstd = t.out[4];
    t.out[1] = mean = t.in[3];
    t.out[2] = rstd = t.in[4];
    if (training) {
      FindMoments(view, t.in[0], &mean, &rstd);
      Advance(t.in[3], mean, 1, momentum, &t.out[1]);
      Advance(t.in[4], rstd, UnbiasedFactor(view.count()), momentum, &t.out[2]);
    }
    FindRstd(rstd, epsilon, &rstd);
    Normalise(view, t.in[0], mean, rstd, t.in[1], t.in[2], &t.out[0]);
    return Status();
  });
}

// ---- BatchNorm ----

Result<NormView> ViewOfBatchNorm(const OpContext& op) {
  if (!op.attr_bool("is_training") && (!op.has("mean") || !op.has("variance"))) {
    return Error(Code::kInvalidArgument,
                 "{}: is_training is false, which needs \"mean\" and \"variance\"", op.Who());
  }
  return ViewOf(op, op.attr_string("data_format"));
}

// y, batch_mean, batch_variance, reserve_space_1 (mean), reserve_space_2 (biased variance), and
// where the node has it reserve_space_3, which is one zero.
Status InferBatchNorm(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOfBatchNorm(op));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, 0, "x"));
  for (int port = 1; port <= 4; ++port) {
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, port, DataType::kFloat, {view.params}));
  }
  return op.outputs() > 5 ? SetOutput(op, 5, DataType::kFloat, {1}) : Status();
}

Result<std::unique_ptr<Kernel>> MakeBatchNorm(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOfBatchNorm(op));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  return MakeRealKernel(op,
                        [=, training = op.attr_bool("is_training"),
                         rstd = Reals(static_cast<size_t>(view.params))](RealTensors& t) mutable {
                          Reals &mean = t.out[3], &variance = t.out[4];
                          if (training) {
                            FindMoments(view, t.in[0], &mean, &variance);
                          } else {
                            mean = t.in[3];
                            variance = t.in[4];
                          }
                          FindRstd(variance, epsilon, &rstd);
                          Normalise(view, t.in[0], mean, rstd, t.in[1], t.in[2], &t.out[0]);
                          const double factor = training ? UnbiasedFactor(view.count()) : 1.0;
                          t.out[1] = mean;
                          for (size_t i = 0; i < variance.size(); ++i)
                            t.out[2][i] = factor * variance[i];
                          return Status();
                        });
}

// ---- BNTrainingReduce, BNTrainingUpdate ----

Status InferReduce(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOf(op, "NCHW"));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, DataType::kFloat, {view.params}));
  return SetOutput(op, 1, DataType::kFloat, {view.params});
}

Result<std::unique_ptr<Kernel>> MakeReduce(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOf(op, "NCHW"));
  return MakeRealKernel(op, [view](RealTensors& t) {
    view.ForEach([&](size_t e, size_t, size_t p) {
      t.out[0][p] += t.in[0][e];
      t.out[1][p] += t.in[0][e] * t.in[0][e];
    });
    return Status();
  });
}

Status InferUpdate(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ViewOf(op, "NCHW").status());
  NPUMESH_RETURN_IF_ERROR(SetLike(op, 0, "x"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, 1, "mean"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, 2, "variance"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, 3, "mean"));
  return SetLike(op, 4, "variance");
}

// Inputs x, sum, square_sum, scale, offset, mean, variance.
Result<std::unique_ptr<Kernel>> MakeUpdate(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormView view, ViewOf(op, "NCHW"));
  const auto epsilon = static_cast<double>(op.attr_float("epsilon"));
  const auto factor = static_cast<double>(op.attr_float("factor"));
  return MakeRealKernel(
      op, [=, rstd = Reals(static_cast<size_t>(view.params))](RealTensors& t) mutable {
        Reals &mean = t.out[3], &variance = t.out[4];
        for (size_t i = 0; i < mean.size(); ++i) {
          mean[i] = t.in[1][i] / view.count();
          variance[i] = std::max(t.in[2][i] / view.count() - mean[i] * mean[i], 0.0);
        }
        FindRstd(variance, epsilon, &rstd);
        Normalise(view, t.in[0], mean, rstd, t.in[3], t.in[4], &t.out[0]);
        Advance(t.in[5], mean, 1, factor, &t.out[1]);
        Advance(t.in[6], variance, UnbiasedFactor(view.count()), factor, &t.out[2]);
        return Status();
      });
}

// ---- SyncBatchNormGatherStats ----

// Sums of one rank or of several, one after the other.
Status InferGatherStats(OpContext& op) {
  const int64_t channels = op.in("mean").shape.elements();
  const int64_t sums = op.in("total_sum").shape.elements();
  for (const PortSpec& port : op.schema().inputs) {
    if (port.name != "sample_count") NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port.name));
  }
  NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "variance", channels, "channel"));
  NPUMESH_RETURN_IF_ERROR(ExpectSameShape(op, "total_square_sum", "total_sum"));
  if (channels == 0 || sums % channels != 0) {
    return Error(Code::kInvalidArgument, "{}: total_sum is {}, expected {} sums for each rank",
                 op.Who(), op.in("total_sum").ToString(), channels);
  }
  const DataType dtype = op.in("total_sum").dtype;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, dtype, op.in("mean").shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, dtype, op.in("mean").shape));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, 2, "mean"));
  return SetLike(op, 3, "variance");
}

Result<std::unique_ptr<Kernel>> MakeGatherStats(const OpContext& op) {
  const auto momentum = static_cast<double>(op.attr_float("momentum"));
  const auto epsilon = static_cast<double>(op.attr_float("eps"));
  const auto channels = static_cast<size_t>(op.in("mean").shape.elements());
  return MakeRealKernel(op, [=, variance = Reals(channels)](RealTensors& t) mutable {
    Reals& mean = t.out[0];
    double count = 0;
    for (const double samples : t.in[2]) count += samples;
    variance.assign(channels, 0.0);
    for (size_t i = 0; i < t.in[0].size(); ++i) {
      mean[i % channels] += t.in[0][i] / count;
      variance[i % channels] += t.in[1][i] / count;
    }
    for (size_t i = 0; i < channels; ++i) {
      variance[i] = std::max(variance[i] - mean[i] * mean[i], 0.0);
    }
    FindRstd(variance, epsilon, &t.out[1]);
    Advance(t.in[3], mean, 1, momentum, &t.out[2]);
    Advance(t.in[4], variance, UnbiasedFactor(count), momentum, &t.out[3]);
    return Status();
  });
}

}  // namespace

void RegisterBatchNormOps(OpRegistry& registry) {
  const AttrSpec epsilon = {"epsilon", AttrValue::Float(1e-5f)};
  const AttrSpec training = {"is_training", AttrValue::Bool(true)};
  registry.Add({.schema = {"BatchNormV3",
                           {{"x"}, {"weight"}, {"bias"}, {"running_mean"}, {"running_var"}},
                           {{"y"}, {"running_mean"}, {"running_var"}, {"save_mean"}, {"save_rstd"}},
                           {epsilon, {"momentum", AttrValue::Float(0.1f)}, training}},
                .infer = InferBatchNormV3,
                .make_kernel = MakeBatchNormV3,
                .in_place = {{1, 3}, {2, 4}}});
  registry.Add({.schema = {"BatchNorm",
                           {{"x"},
                            {"scale"},
                            {"offset"},
                            {"mean", PortKind::kOptional},
                            {"variance", PortKind::kOptional}},
                           {{"y"},
                            {"batch_mean"},
                            {"batch_variance"},
                            {"reserve_space_1"},
                            {"reserve_space_2"},
                            {"reserve_space_3"}},
                           {{"epsilon", AttrValue::Float(1e-4f)},
                            {"data_format", AttrValue::String("NHWC")},
                            training,
                            AttrSpec::Only("exponential_avg_factor", AttrValue::Float(1.0f))}},
                .infer = InferBatchNorm,
                .make_kernel = MakeBatchNorm});
  registry.Add({.schema = {"BNTrainingReduce", {{"x"}}, {{"sum"}, {"square_sum"}}, {}},
                .infer = InferReduce,
                .make_kernel = MakeReduce});
  registry.Add(
      {.schema = {"BNTrainingUpdate",
                  {{"x"}, {"sum"}, {"square_sum"}, {"scale"}, {"offset"}, {"mean"}, {"variance"}},
                  {{"y"}, {"mean"}, {"variance"}, {"batch_mean"}, {"batch_variance"}},
                  {{"factor", Required::kFloat}, {"epsilon", Required::kFloat}}},
       .infer = InferUpdate,
       .make_kernel = MakeUpdate,
       .in_place = {{1, 5}, {2, 6}}});
  registry.Add(
      {.schema = {"SyncBatchNormGatherStats",
                  {{"total_sum"}, {"total_square_sum"}, {"sample_count"}, {"mean"}, {"variance"}},
                  {{"batch_mean"}, {"batch_invstd"}, {"mean"}, {"variance"}},
                  {{"momentum", AttrValue::Float(0.1f)}, {"eps", AttrValue::Float(1e-5f)}}},
       .infer = InferGatherStats,
       .make_kernel = MakeGatherStats,
       .in_place = {{2, 3}, {3, 4}}});
  RegisterBatchNormGradients(registry);
}

}  // namespace npumesh
