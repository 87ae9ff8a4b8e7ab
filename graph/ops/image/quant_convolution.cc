// QuantConv2D: convolution of int8 by int8, in exact int32 sums.
//
//   y = (sum over the window of x * filter + bias) * scale[channel], rounded once
//
// The padding holds offset_x. Windows become the rows of a matrix, a block of positions at a time,
// and are multiplied by the filters of their group.
#include <algorithm>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/image/convolution.h"
#include "graph/ops/toolbox/copy/strided_copy.h"
#include "graph/ops/toolbox/product/product_plan.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// Windows that are multiplied at once: the filters are read once for all of them.
constexpr int64_t kWindows = 256;

struct QuantConvPlan : ProductPlan {
  Convolution shape;  // where x, the filter and y lie
  Dequant dequant;
  int8_t beyond = 0;  // what the padding holds
  DataType y = DataType::kUndefined;
  int64_t window = 0;  // products of a sum
  StridedCopy arrange;
  Workspace<int8_t> windows, filters;

  int64_t groups() const { return shape.filter.dims[0]; }
  int64_t channels() const { return shape.filter.dims[1]; }  // of y in a group
  int64_t inputs() const { return shape.filter.dims[2]; }    // of x in a group
};

// Brings the filters of all groups into the order of their windows: [groups, channels, inputs,
// height, width].
StridedCopy ArrangementOf(const ConvolutionTensor& filter) {
  std::vector<CopyAxis> axes(filter.dims.size());
  int64_t packed = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    axes[i] = {filter.dims[i], filter.strides[i], packed};
    packed *= filter.dims[i];
  }
  return StridedCopy(axes, 1);
}

QuantConvPlan PlanQuantConv(const OpContext& op, Check& check) {
  QuantConvPlan plan;
  check.NotFed({"offset"});
  check.OneOf("round_mode", {"rint"});
  const int64_t beyond = check.Between("offset_x", -128, 127);
  plan.y = check.TypeOf("dtype", kFloats, Code::kInvalidArgument);
  plan.shape = check.Take(PlanQuantConvolution(op));
  if (!check.ok()) return plan;
  plan.beyond = static_cast<int8_t>(beyond);
  const int64_t all = plan.groups() * plan.channels();
  check.Type("scale", TypeSet{DataType::kUint64, DataType::kInt64, DataType::kFloat});
  plan.dequant.scale = FactorsOf(check, op, "scale", {1, all});
  if (op.has("bias")) check.Type("bias", DataType::kInt32);
  ReadBias(check, op, plan.dequant, {all});
  if (!check.ok()) return plan;
  const std::vector<int64_t>& filter = plan.shape.filter.dims;
  plan.window = plan.inputs() * filter[3] * filter[4];
  plan.arrange = ArrangementOf(plan.shape.filter);
  plan.TakeProduct(op, plan.window, true);
  plan.windows = plan.scratch.Take<int8_t>(kWindows * plan.window);
  plan.filters = plan.scratch.Take<int8_t>(plan.shape.filter.elements);
  plan.outputs = {{plan.y, plan.shape.outputs[0].shape}};
  return plan;
}

// The window of group `g` at a position of y.
void LoadWindow(const QuantConvPlan& plan, const int8_t* image, int64_t g, int64_t top,
                int64_t left, int8_t* to) {
  const Convolution& shape = plan.shape;
  const std::vector<int64_t>&dims = shape.x.dims, &strides = shape.x.strides;
  const int64_t first_row = top * shape.strides[0] - shape.before[0];
  const int64_t first_column = left * shape.strides[1] - shape.before[1];
  for (int64_t i = 0; i < plan.inputs(); ++i) {
    const int8_t* channel = image + (g * plan.inputs() + i) * strides[1];
    for (int64_t h = 0; h < shape.filter.dims[3]; ++h) {
      const int64_t row = first_row + h * shape.dilations[0];
      for (int64_t w = 0; w < shape.filter.dims[4]; ++w) {
        const int64_t column = first_column + w * shape.dilations[1];
        const bool inside = row >= 0 && row < dims[2] && column >= 0 && column < dims[3];
        *to++ = inside ? channel[row * strides[2] + column * strides[3]] : plan.beyond;
      }
    }
  }
}

// Rounds the sums of a position, for consecutive channels of y from `channel` on.
void StorePosition(const QuantConvPlan& plan, const KernelArgs& args, int64_t batch,
                   int64_t position, int64_t channel, const float* values, int64_t count) {
  const std::vector<int64_t>&dims = plan.shape.y.dims, &strides = plan.shape.y.strides;
  const int64_t first = batch * strides[0] + channel * strides[1] +
                        position / dims[3] * strides[2] + position % dims[3] * strides[3];
  if (strides[1] == 1) return StoreRow(plan.y, values, args.out[0], first, count);
  for (int64_t c = 0; c < count; ++c) {
    StoreRow(plan.y, values + c, args.out[0], first + c * strides[1], 1);
  }
}

// Positions [first, first + count) of the image of group `g`.
Status RunBlock(const QuantConvPlan& plan, const KernelArgs& args, int64_t batch, int64_t g,
                int64_t first, int64_t count) {
  const ConvolutionTensor &x = plan.shape.x, &y = plan.shape.y;
  const auto* image = static_cast<const int8_t*>(args.in[*x.slot]) + batch * x.strides[0];
  int8_t* const windows = plan.windows(args);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = first + i;
    LoadWindow(plan, image, g, position / y.dims[3], position % y.dims[3],
               windows + i * plan.window);
  }
  const StoredMatrix left = {.dtype = DataType::kInt8, .data = windows};
  const StoredMatrix right = {.dtype = DataType::kInt8,
                              .data = plan.filters(args) + g * plan.channels() * plan.window,
                              .transposed = true};
  const Dequant dequant = plan.dequant.Part(g, plan.groups());
  float *factors = plan.factors(args), *values = plan.results(args);
  return plan.product.Run(
      args, count, plan.channels(), left, right, {}, [&](const SumSegment& segment) {
        dequant.Apply(args, segment, factors, values);
        StorePosition(plan, args, batch, first + segment.row, g * plan.channels() + segment.first,
                      values, segment.count);
      });
}

Status RunQuantConv(const QuantConvPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  if (plan.outputs[0].shape.elements() == 0) return Status();
  plan.arrange.Run(args.in[*plan.shape.filter.slot], plan.filters(args));
  const std::vector<int64_t>& y = plan.shape.y.dims;
  const int64_t positions = y[2] * y[3];
  for (int64_t b = 0; b < y[0]; ++b) {
    for (int64_t g = 0; g < plan.groups(); ++g) {
      for (int64_t first = 0; first < positions; first += kWindows) {
        NPUMESH_RETURN_IF_ERROR(
            RunBlock(plan, args, b, g, first, std::min(kWindows, positions - first)));
      }
    }
  }
  return Status();
}

}  // namespace

void RegisterQuantConvolutionOps(OpRegistry& registry) {
  registry.Add(Define<PlanQuantConv, RunQuantConv>(
      "QuantConv2D(x, filter, scale, bias?, offset?; dtype:int, strides:ints, pads:ints, "
      "dilations=[1,1,1,1], groups=1, data_format=\"NHWC\", offset_x=0, round_mode=\"rint\") -> y",
      {.precision = PrecisionClass::kKept}));
}

}  // namespace npumesh
