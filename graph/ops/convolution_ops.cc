// Conv2D, DepthwiseConv2D, Conv3D, and the operators that go the other way: Conv2DTranspose,
// Conv3DTranspose, Conv2DBackpropInput, Conv3DBackpropInput; Conv2DBackpropFilter and
// Conv3DBackpropFilter. Ops reference 5.8 and 5.19.
//
// Layouts: x and y are NCHW or NHWC (NCDHW, NDHWC); the filter of the former has the output
// channels first, of the latter last (HWCN). Transposes store filters as the convolution whose
// gradient they are: [channels of x, channels of y / groups, image].
#include <algorithm>

#include "graph/ops/cast.h"
#include "graph/ops/convolution.h"
#include "graph/ops/image_layout.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/layer_families.h"

namespace npumesh {
namespace {

struct ConvolutionRow {
  std::string_view type;
  int image;                 // dimensions of the image
  bool transposed = false;   // y has the shape of port input_size
  bool depthwise = false;    // every channel has filters of its own
  std::string_view x = "x";  // port
  bool has_bias = true;
  bool of_filter = false;  // y is the gradient of a filter in the shape of port filter_size
};

constexpr ConvolutionRow kRows[] = {
    {"Conv2D", 2},
    {"DepthwiseConv2D", 2, false, true},
    {"Conv3D", 3},
    {"Conv2DTranspose", 2, true},
    {"Conv3DTranspose", 3, true},
    {"Conv2DBackpropInput", 2, true, false, "out_backprop", false},
    {"Conv3DBackpropInput", 3, true, false, "out_backprop", false},
    {"Conv2DBackpropFilter", 2, false, false, "x", false, true},
    {"Conv3DBackpropFilter", 3, false, false, "x", false, true},
};

// The numbers of a list attribute that belong to the image; the others must be 1.
Result<std::vector<int64_t>> ImageNumbers(const OpContext& op, std::string_view attr, int image,
                                          bool last) {
  const std::vector<int64_t> list = op.attr_ints(attr);
  bool fits = static_cast<int>(list.size()) == image + 2;
  const size_t first = last ? 1 : 2;
  std::vector<int64_t> numbers;
  for (size_t i = 0; fits && i < list.size(); ++i) {
    const bool inside = i >= first && i < first + static_cast<size_t>(image);
    fits = list[i] >= 1 && (inside || list[i] == 1);
    if (inside) numbers.push_back(list[i]);
  }
  if (fits) return numbers;
  return Error(Code::kInvalidArgument,
               "{}: \"{}\" is {}, expected {} numbers, 1 and more for the image and 1 elsewhere",
               op.Who(), attr, Shape(list).ToString(), image + 2);
}

// [batch, channels, image...] of a tensor and the distances along them.
ConvolutionTensor Activation(int slot, const TensorType& type, bool last) {
  const std::vector<int64_t> strides = ByteStrides(type.shape, 1);
  const std::vector<int64_t>& dims = type.shape.dims();
  ConvolutionTensor tensor{slot, type.dtype, dims, strides, type.shape.elements()};
  if (last) {  // the channels move to the second place
    std::rotate(tensor.dims.begin() + 1, tensor.dims.end() - 1, tensor.dims.end());
    std::rotate(tensor.strides.begin() + 1, tensor.strides.end() - 1, tensor.strides.end());
  }
  return tensor;
}

// The filter, or what its gradient will be.
Result<TensorType> FilterType(const OpContext& op, const ConvolutionRow& row) {
  if (!row.of_filter) return op.in("filter");
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> size, op.Ints("filter_size"));
  Shape shape(std::move(size));
  NPUMESH_RETURN_IF_ERROR(shape.Check().WithContext(op.Who()));
  if (shape.is_static()) return TensorType{op.in(row.x).dtype, std::move(shape)};
  return Error(Code::kInvalidArgument, "{}: filter_size is {}, expected known dimensions", op.Who(),
               shape.ToString());
}

std::string FilterLayout(const OpContext& op, const ConvolutionRow& row, bool last) {
  const std::string_view fallback = last ? "HWCN" : "NCHW";
  if (!row.of_filter) return LayoutOf(op, op.slot("filter"), fallback);
  const std::string& own = op.node().output_descs[0].layout;
  return own.empty() || own == "ND" ? std::string(fallback) : own;
}

// [groups, outputs, inputs, image...] of the filter.
Result<ConvolutionTensor> Filter(const OpContext& op, const ConvolutionRow& row,
                                 const TensorType& type, bool last, int64_t groups) {
  const int slot = row.of_filter ? -1 : op.slot("filter");
  const std::string layout = FilterLayout(op, row, last);
  const bool behind = layout.starts_with('H') || layout.starts_with('D');  // HWCN, DHWCN
  const int rank = row.image + 2;
  if (type.shape.rank() != rank) {
    return Error(Code::kInvalidArgument, "{}: \"filter\" is {}, expected {} dimensions", op.Who(),
                 type.ToString(), rank);
  }
  const std::vector<int64_t> distance = ByteStrides(type.shape, 1);
  const int first = behind ? 0 : 2;  // of the image
  const int outer = behind ? rank - 1 : 0, inner = behind ? rank - 2 : 1;
  ConvolutionTensor filter{slot, type.dtype, {}, {}, type.shape.elements()};
  int64_t outer_size = type.shape[outer], inner_size = type.shape[inner];
  int64_t outer_step = distance[static_cast<size_t>(outer)];
  int64_t inner_step = distance[static_cast<size_t>(inner)];
  if (row.depthwise && behind) {  // [h, w, channels, multiples]
    outer_size *= inner_size;
    inner_size = 1;
  }
  if (outer_size % groups != 0) {
    return Error(Code::kInvalidArgument, "{}: {} filters for {} groups", op.Who(), outer_size,
                 groups);
  }
  const int64_t share = outer_size / groups;
  // A transpose reads the dimension of the outputs as its inputs.
  filter.dims = row.transposed ? std::vector<int64_t>{groups, inner_size, share}
                               : std::vector<int64_t>{groups, share, inner_size};
  filter.strides = row.transposed
                       ? std::vector<int64_t>{share * outer_step, inner_step, outer_step}
                       : std::vector<int64_t>{share * outer_step, outer_step, inner_step};
  for (int i = 0; i < row.image; ++i) {
    filter.dims.push_back(type.shape[first + i]);
    filter.strides.push_back(distance[static_cast<size_t>(first + i)]);
  }
  return filter;
}

// Padding before and behind each dimension, from "pads" or from "padding" SAME or VALID.
Status SetPads(const OpContext& op, const ConvolutionRow& row, const std::vector<int64_t>& x,
               const std::vector<int64_t>& reach, Convolution& plan) {
  std::vector<int64_t> pads = op.attr_ints("pads");
  const auto image = static_cast<size_t>(row.image);
  const std::string padding = op.attr_string("padding");
  const bool computed = std::count(pads.begin(), pads.end(), -1) > 0;
  if (pads.size() != 2 * image || (computed && padding != "SAME" && padding != "VALID")) {
    return Error(Code::kInvalidArgument, "{}: \"pads\" are {}, expected {} numbers", op.Who(),
                 Shape(pads).ToString(), 2 * image);
  }
  for (size_t i = 0; i < image; ++i) {
    if (!computed) {
      plan.before.push_back(pads[2 * i]);
      plan.behind.push_back(pads[2 * i + 1]);
      continue;
    }
    const int64_t windows = (x[i] + plan.strides[i] - 1) / plan.strides[i];
    const int64_t missing = (windows - 1) * plan.strides[i] + reach[i] - x[i];
    const int64_t all = padding == "SAME" ? std::max<int64_t>(missing, 0) : 0;
    plan.before.push_back(all / 2);
    plan.behind.push_back(all - all / 2);
  }
  for (size_t i = 0; i < image; ++i) {
    if (plan.before[i] < 0 || plan.behind[i] < 0 || plan.before[i] > INT32_MAX ||
        plan.behind[i] > INT32_MAX) {
      return Error(Code::kInvalidArgument, "{}: \"pads\" are {}, expected none negative", op.Who(),
                   Shape(pads).ToString());
    }
  }
  return Status();
}

// Positions that a filter covers along each dimension.
std::vector<int64_t> Reach(const Convolution& plan) {
  std::vector<int64_t> reach;
  for (size_t i = 0; i < plan.strides.size(); ++i) {
    reach.push_back(plan.dilations[i] * (plan.filter.dims[3 + i] - 1) + 1);
  }
  return reach;
}

// The image of y of a convolution.
std::vector<int64_t> Gathered(const Convolution& plan, const std::vector<int64_t>& from) {
  std::vector<int64_t> to;
  const std::vector<int64_t> reach = Reach(plan);
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t room = from[i] + plan.before[i] + plan.behind[i] - reach[i];
    to.push_back(room < 0 ? 0 : room / plan.strides[i] + 1);
  }
  return to;
}

std::vector<int64_t> ImageOf(const ConvolutionTensor& tensor) {
  return {tensor.dims.begin() + 2, tensor.dims.end()};
}

Shape ShapeOf(int64_t batch, int64_t channels, const std::vector<int64_t>& image, bool last) {
  std::vector<int64_t> dims = {batch};
  if (!last) dims.push_back(channels);
  dims.insert(dims.end(), image.begin(), image.end());
  if (last) dims.push_back(channels);
  return Shape(std::move(dims));
}

// The shape of y: what is left of x, or what input_size says, whose convolution must give x.
Result<Shape> OutputShape(const OpContext& op, const ConvolutionRow& row,
                          const TensorType& filter_type, bool last, Convolution& plan) {
  const std::vector<int64_t>& filter = plan.filter.dims;
  const int64_t batch = plan.x.dims[0];
  const int64_t inputs = filter[0] * filter[2], outputs = filter[0] * filter[1];
  if (plan.x.dims[1] != inputs) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" {} has {} channels, the filter {} takes {}",
                 op.Who(), row.x, op.in(row.x).ToString(), plan.x.dims[1], filter_type.ToString(),
                 inputs);
  }
  const std::vector<int64_t> image = ImageOf(plan.x);
  if (!row.transposed) {
    NPUMESH_RETURN_IF_ERROR(SetPads(op, row, image, Reach(plan), plan));
    return ShapeOf(batch, outputs, Gathered(plan, image), last);
  }
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> size, op.Ints("input_size"));
  const Shape y(std::move(size));
  NPUMESH_RETURN_IF_ERROR(y.Check().WithContext(op.Who()));
  bool fits = y.is_static() && y.rank() == row.image + 2;
  std::vector<int64_t> spread;
  if (fits) spread.assign(y.dims().begin() + (last ? 1 : 2), y.dims().end() - (last ? 1 : 0));
  if (fits) NPUMESH_RETURN_IF_ERROR(SetPads(op, row, spread, Reach(plan), plan));
  fits = fits && y == ShapeOf(batch, outputs, spread, last) && Gathered(plan, spread) == image;
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: input_size {} does not become \"{}\" {} by filter {}, strides and pads",
                 op.Who(), y.ToString(), row.x, op.in(row.x).ToString(), filter_type.ToString());
  }
  // What the strides leave over belongs behind the image.
  const std::vector<int64_t> reach = Reach(plan);
  for (size_t i = 0; i < spread.size(); ++i) {
    plan.behind[i] = (image[i] - 1) * plan.strides[i] + reach[i] - plan.before[i] - spread[i];
  }
  return y;
}

struct Planned {
  Convolution convolution;
  Shape y;
  bool last = false;
};

Status CheckTypes(const OpContext& op, const ConvolutionRow& row) {
  const DataType dtype = op.in(row.x).dtype;
  const bool real =
      dtype == DataType::kFloat || dtype == DataType::kFloat16 || dtype == DataType::kBfloat16;
  const std::string_view other = row.of_filter ? "out_backprop" : "filter";
  if (!real || op.in(other).dtype != dtype) {
    return Error(Code::kUnsupported,
                 "{}: \"{}\" {} and {} {}: expected float32, float16 or bfloat16, both alike",
                 op.Who(), row.x, op.in(row.x).ToString(), other, op.in(other).ToString());
  }
  if (row.has_bias && op.has("offset_w")) {
    return Error(Code::kUnsupported, "{}: \"offset_w\" is connected, but only for int8", op.Who());
  }
  return Status();
}

Status SetBias(const OpContext& op, const ConvolutionRow& row, Planned& plan) {
  if (!row.has_bias || !op.has("bias")) return Status();
  const TensorType& bias = op.in("bias");
  const int64_t outputs = plan.convolution.filter.dims[0] * plan.convolution.filter.dims[1];
  if (!IsFloating(bias.dtype) || FindConvert(bias.dtype, DataType::kFloat) == nullptr ||
      bias.shape.elements() != outputs) {
    return Error(Code::kInvalidArgument, "{}: \"bias\" is {}, expected {} floats", op.Who(),
                 bias.ToString(), outputs);
  }
  plan.convolution.bias = {op.slot("bias"), bias.dtype, {outputs}, {1}, outputs};
  return Status();
}

Result<Planned> Plan(const OpContext& op, const ConvolutionRow& row) {
  NPUMESH_RETURN_IF_ERROR(CheckTypes(op, row));
  const int slot = op.slot(row.x);
  const TensorType& x = op.in(slot);
  Planned plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.last, ChannelsLast(op, slot, op.attr_string("data_format")));
  if (x.shape.rank() != row.image + 2) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected {} dimensions", op.Who(),
                 row.x, x.ToString(), row.image + 2);
  }
  Convolution& convolution = plan.convolution;
  convolution.who = op.Who();
  convolution.threads = op.threads();
  convolution.transposed = row.transposed;
  const bool by_last = op.attr_string("data_format").ends_with('C');
  NPUMESH_ASSIGN_OR_RETURN(convolution.strides, ImageNumbers(op, "strides", row.image, by_last));
  NPUMESH_ASSIGN_OR_RETURN(convolution.dilations,
                           ImageNumbers(op, "dilations", row.image, by_last));
  convolution.x = Activation(slot, x, plan.last);
  const int64_t groups = row.depthwise ? convolution.x.dims[1] : op.attr_int("groups");
  if (groups < 1) {
    return Error(Code::kInvalidArgument, "{}: {} groups, expected 1 or more", op.Who(), groups);
  }
  NPUMESH_ASSIGN_OR_RETURN(const TensorType filter, FilterType(op, row));
  NPUMESH_ASSIGN_OR_RETURN(convolution.filter, Filter(op, row, filter, plan.last, groups));
  NPUMESH_ASSIGN_OR_RETURN(plan.y, OutputShape(op, row, filter, plan.last, convolution));
  NPUMESH_RETURN_IF_ERROR(SetBias(op, row, plan));
  NPUMESH_RETURN_IF_ERROR(plan.y.Check().WithContext(op.Who()));
  convolution.y = Activation(-1, {x.dtype, plan.y}, plan.last);
  if (!row.of_filter) return plan;
  convolution.y.slot = op.slot("out_backprop");
  if (op.in("out_backprop").shape != plan.y) {
    return Error(Code::kInvalidArgument, "{}: out_backprop is {}, but the convolution gives {}",
                 op.Who(), op.in("out_backprop").ToString(), plan.y.ToString());
  }
  plan.y = filter.shape;
  return plan;
}

void RegisterConvolution(OpRegistry& registry, const ConvolutionRow& row) {
  OpSchema schema;
  schema.type = row.type;
  if (row.transposed) schema.inputs.push_back({"input_size"});
  if (row.of_filter) {
    schema.inputs = {{row.x}, {"filter_size"}, {"out_backprop"}};
  } else if (!row.has_bias) {
    schema.inputs.insert(schema.inputs.end(), {{"filter"}, {row.x}});
  } else {
    schema.inputs.insert(
        schema.inputs.end(),
        {{row.x}, {"filter"}, {"bias", PortKind::kOptional}, {"offset_w", PortKind::kOptional}});
  }
  schema.outputs = {{"y"}};
  const auto size = static_cast<size_t>(row.image + 2);
  schema.attrs = {{"strides", Required::kInts},
                  {"pads", Required::kInts},
                  {"dilations", AttrValue::Ints(std::vector<int64_t>(size, 1))},
                  {"data_format", AttrValue::String(row.image == 2 ? "NHWC" : "NDHWC")},
                  {"padding", AttrValue::String("")}};
  if (!row.depthwise) schema.attrs.push_back({"groups", AttrValue::Int(1)});
  if (row.has_bias) schema.attrs.push_back({"offset_x", AttrValue::Int(0)});
  if (row.transposed && row.has_bias) {
    schema.attrs.push_back({"output_padding", AttrValue::Ints(std::vector<int64_t>(size, 0))});
  }
  Operator op;
  op.schema = std::move(schema);
  op.infer = [&row](OpContext& context) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(Planned plan, Plan(context, row));
    return SetOutput(context, 0, context.in(row.x).dtype, std::move(plan.y));
  };
  op.make_kernel = [&row](const OpContext& context) -> Result<std::unique_ptr<Kernel>> {
    NPUMESH_ASSIGN_OR_RETURN(Planned plan, Plan(context, row));
    return row.of_filter ? MakeFilterGradient(std::move(plan.convolution))
                         : MakeConvolution(std::move(plan.convolution));
  };
  if (row.transposed) op.value_inputs = {"input_size"};
  if (row.of_filter) op.value_inputs = {"filter_size"};
  if (row.type == "Conv2D") op.weight = WeightTrait{"filter", "FRACTAL_Z", "NCHW"};
  registry.Add(std::move(op));
}

}  // namespace

void RegisterConvolutionOps(OpRegistry& registry) {
  for (const ConvolutionRow& row : kRows) RegisterConvolution(registry, row);
}

}  // namespace npumesh
