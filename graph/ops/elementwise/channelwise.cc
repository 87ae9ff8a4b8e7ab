// Operators with one number for each channel: BNInfer and its gradient, the parts of SyncBatchNorm,
// BiasAdd, and Scale, which names the dimensions it has numbers for.
#include <array>
#include <cmath>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/elementwise/batch_norm.h"
#include "graph/ops/elementwise/pointwise.h"
#include "graph/ops/toolbox/rows/image_layout.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

using C = PointwiseConstants;

// Slot 0 is the image, as is another input of its shape; anything else is a vector along the
// channels. `fallback` is the layout where the graph says none.
Result<Shape> AlongChannels(const OpContext& op, int slot, std::string_view fallback) {
  const Shape& x = op.in(0).shape;
  const Shape& own = op.in(slot).shape;
  if (slot == 0 || (own == x && own.rank() > 1)) return own;
  // Vectors and matrices have no layout: their last dimension, [N, C], is the channel.
  bool last = true;
  if (x.rank() > 2) {
    NPUMESH_ASSIGN_OR_RETURN(last, ChannelsLast(op, 0, fallback));
  }
  const int channel = last ? x.rank() - 1 : 1;
  if (x.rank() == 0 || own.elements() != x[channel]) {
    return Error(Code::kInvalidArgument,
                 "{}: input {} is {}, expected one number for each channel of {}", op.Who(), slot,
                 own.ToString(), x.ToString());
  }
  std::vector<int64_t> dims(static_cast<size_t>(x.rank() - channel), 1);
  dims[0] = x[channel];
  return Shape(std::move(dims));
}

Result<Shape> AlongChannelsOfNchw(const OpContext& op, int slot) {
  return AlongChannels(op, slot, "NCHW");
}

Result<Shape> AlongChannelsByFormat(const OpContext& op, int slot) {
  return AlongChannels(op, slot, op.attr_string("data_format"));
}

// Scale: dimensions [axis, axis + num_axes) of x, of -1 all from axis on, of 0 none; without
// scale_from_blob as many as the factor has.
Result<Shape> AlongNamedAxes(const OpContext& op, int slot) {
  const Shape& x = op.in(0).shape;
  const Shape& own = op.in(slot).shape;
  if (slot == 0) return own;
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("axis"), x.rank(), "axis"));
  const int64_t given = op.attr_int("num_axes"), behind = x.rank() - axis;
  const bool one = own.rank() == 0 || own == Shape{1};
  int64_t axes = op.attr_bool("scale_from_blob") ? given : one ? 0 : own.rank();
  if (axes == -1) axes = behind;
  bool fits = given >= -1 && axes <= behind && (axes == 0 ? one : own.rank() == axes);
  for (int i = 0; fits && axes > 0 && i < own.rank(); ++i) fits = own[i] == x[axis + i];
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: input {} is {}, expected the sizes of {} from axis {} on, as many as "
                 "num_axes {} says",
                 op.Who(), slot, own.ToString(), x.ToString(), axis, given);
  }
  std::vector<int64_t> dims(static_cast<size_t>(behind), 1);
  for (int i = 0; i < own.rank(); ++i) dims[static_cast<size_t>(i)] = own[i];
  return Shape(std::move(dims));
}

const PointwiseSpec kChannelwise[] = {
    {"BNInfer(x, scale, offset, mean, variance; epsilon:float) -> y",
     [](Real auto x, Real auto scale, Real auto offset, Real auto mean, Real auto variance,
        const C& c) { return (x - mean) / RootOf(variance + c[0]) * scale + offset; },
     {.data = 1,
      .seen_as = AlongChannelsOfNchw,
      .axes = "x[n c ..], scale[c], offset[c], mean[c], variance[c] -> y[n c ..]",
      .precision = PrecisionClass::kBlack}},
    {"BNInferGrad(grads, scale, batch_variance; epsilon=0.0001) -> x_backprop",
     [](Real auto grad, Real auto scale, Real auto variance, const C& c) {
       return grad * scale / RootOf(variance + c[0]);
     },
     {.data = 1,
      .seen_as = AlongChannelsOfNchw,
      .axes = "grads[n c ..], scale[c], batch_variance[c] -> x_backprop[n c ..]",
      .precision = PrecisionClass::kBlack}},
    {"SyncBatchNormBackwardElemt(grad_output, save_input, mean, invstd, weight, mean_dy, "
     "mean_dy_xmu) -> grad_input",
     [](Real auto grad, Real auto x, Real auto mean, Real auto invstd, Real auto weight,
        Real auto mean_dy, Real auto mean_dy_xmu) {
       const auto centered = (x - mean) * invstd * invstd * mean_dy_xmu;
       return (grad - mean_dy - centered) * invstd * weight;
     },
     {.data = 1,
      .seen_as = AlongChannelsOfNchw,
      .axes = "grad_output[n c ..], save_input[n c ..], mean[c], invstd[c], weight[c], mean_dy[c], "
              "mean_dy_xmu[c] -> grad_input[n c ..]",
      .precision = PrecisionClass::kBlack}},
    {"SyncBatchNormBackwardReduce(sum_dy, sum_dy_dx_pad, mean, invert_std) -> sum_dy_xmu, y",
     [](Real auto sum_dy, Real auto sum_dy_dx_pad, Real auto mean, Real auto invert_std) {
       const auto sum_dy_xmu = sum_dy_dx_pad - sum_dy * mean;
       return std::array{sum_dy_xmu, sum_dy_xmu * invert_std};
     },
     {.precision = PrecisionClass::kBlack}},
    {"BiasAdd(x, bias; data_format=\"NHWC\") -> y",
     [](Real auto x, Real auto bias) { return x + bias; },
     {.integer = [](WideInt x, WideInt bias) { return x + bias; },
      .data = 1,
      .seen_as = AlongChannelsByFormat,
      .axes = "x[..], bias[?] -> y[..]",
      .words = {"NHWC", "NCHW", "NDHWC", "NCDHW"}}},
    {"Scale(x, scale, bias?; axis=1, num_axes=1, scale_from_blob=true) -> y",
     [](Real auto x, Real auto scale, Real auto bias) { return x * scale + bias; },
     {.data = 1, .seen_as = AlongNamedAxes, .axes = "x[..], scale[?], bias[?] -> y[..]"}},
};

// The doubles of a constant input; empty: it is only known at run time.
std::vector<double> KnownNumbers(const OpContext& op, std::string_view port) {
  const Tensor* const value = op.value(op.slot(port));
  const ConvertFn convert =
      value == nullptr ? nullptr : FindConvert(value->dtype(), DataType::kDouble);
  std::vector<double> numbers;
  if (convert == nullptr) return numbers;
  numbers.resize(static_cast<size_t>(value->elements()));
  convert(value->data(), numbers.data(), numbers.size());
  return numbers;
}

// With known statistics a batch norm is a product and a sum; else it goes through its formula.
MakeKernelFn WithKnownStatistics(MakeKernelFn formula) {
  return [formula = std::move(formula)](const OpContext& op) -> Result<std::unique_ptr<Kernel>> {
    const std::optional<ChannelFactors> factors = BatchNormFactors(op);
    if (!factors) return formula(op);
    const Shape& x = op.in("x").shape;
    return MakeChannelScale(*factors, x[0], ElementsBetween(x, 2, x.rank()), 1, op.threads());
  };
}

}  // namespace

std::optional<ChannelFactors> BatchNormFactors(const OpContext& op) {
  const TensorType& x = op.in("x");
  if (x.dtype != DataType::kFloat || x.shape.rank() < 3 || x.shape.elements() == 0) {
    return std::nullopt;
  }
  const Result<bool> last = ChannelsLast(op, 0, "NCHW");
  const auto channels = static_cast<size_t>(x.shape[1]);
  std::array<std::vector<double>, 4> known;
  const std::array<std::string_view, 4> ports = {"scale", "offset", "mean", "variance"};
  for (size_t i = 0; i < ports.size(); ++i) {
    known[i] = KnownNumbers(op, ports[i]);
    if (!last.ok() || *last || known[i].size() != channels) return std::nullopt;
  }
  const auto& [scale, offset, mean, variance] = known;
  ChannelFactors factors;
  for (size_t c = 0; c < channels; ++c) {
    const double root = std::sqrt(variance[c] + double{op.attr_float("epsilon")});
    factors.factor.push_back(scale[c] / root);
    factors.summand.push_back(offset[c] - mean[c] * factors.factor.back());
  }
  return factors;
}

void RegisterChannelOps(OpRegistry& registry) {
  RegisterPointwise(registry, kChannelwise, -1, [](Operator& op) {
    if (op.schema.type == "BNInfer")
      op.make_kernel = WithKnownStatistics(std::move(op.make_kernel));
  });
}

}  // namespace npumesh
