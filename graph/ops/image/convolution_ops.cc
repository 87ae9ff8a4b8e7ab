// Conv2D, DepthwiseConv2D, Conv3D, and the operators that go the other way: Conv2DTranspose,
// Conv3DTranspose, Conv2DBackpropInput, Conv3DBackpropInput; Conv2DBackpropFilter and
// Conv3DBackpropFilter.
//
// Layouts: x and y are NCHW or NHWC (NCDHW, NDHWC); the filter of the former has the output
// channels first, of the latter last (HWCN). Transposes store filters as the convolution whose
// gradient they are: [channels of x, channels of y / groups, image].
#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/image/convolution.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/image_layout.h"

namespace npumesh {
namespace {

enum class ConvolutionKind : uint8_t {
  kForward,
  kDepthwise,   // each channel has its filters
  kTranspose,   // y has the shape of port input_size
  kInputGrad,   // the same of port out_backprop
  kFilterGrad,  // y is the gradient of a filter in the shape of port filter_size
  kQuantised,   // of int8, with its own kernel (quant_convolution.cc)
  kLinear,      // of bytes with zeros, with its own kernel (linear_convolution.cc)
};
using enum ConvolutionKind;

struct ConvolutionRow {
  std::string_view signature;
  int image;  // dimensions of the image
  ConvolutionKind kind;
  bool packs = false;  // devices like the filter in FRACTAL_Z

  bool transposed() const { return kind == kTranspose || kind == kInputGrad; }
  bool of_bytes() const { return kind == kQuantised || kind == kLinear; }
  bool has_bias() const { return kind != kInputGrad && kind != kFilterGrad && !of_bytes(); }
  std::string_view x() const { return kind == kInputGrad ? "out_backprop" : "x"; }  // port
};

constexpr ConvolutionRow kRows[] = {
    {"Conv2D(x, filter, bias?, offset_w?; strides:ints, pads:ints, dilations=[1,1,1,1], "
     "data_format=\"NHWC\", padding=\"\", groups=1, offset_x=0) -> y",
     2, kForward, true},
    {"DepthwiseConv2D(x, filter, bias?, offset_w?; strides:ints, pads:ints, dilations=[1,1,1,1], "
     "data_format=\"NHWC\", padding=\"\", offset_x=0) -> y",
     2, kDepthwise},
    {"Conv3D(x, filter, bias?, offset_w?; strides:ints, pads:ints, dilations=[1,1,1,1,1], "
     "data_format=\"NDHWC\", padding=\"\", groups=1, offset_x=0) -> y",
     3, kForward},
    {"Conv2DTranspose(input_size, x, filter, bias?, offset_w?; strides:ints, pads:ints, "
     "dilations=[1,1,1,1], data_format=\"NHWC\", padding=\"\", groups=1, offset_x=0, "
     "output_padding=[0,0,0,0]) -> y",
     2, kTranspose},
    {"Conv3DTranspose(input_size, x, filter, bias?, offset_w?; strides:ints, pads:ints, "
     "dilations=[1,1,1,1,1], data_format=\"NDHWC\", padding=\"\", groups=1, offset_x=0, "
     "output_padding=[0,0,0,0,0]) -> y",
     3, kTranspose},
    {"Conv2DBackpropInput(input_size, filter, out_backprop; strides:ints, pads:ints, "
     "dilations=[1,1,1,1], data_format=\"NHWC\", padding=\"\", groups=1) -> y",
     2, kInputGrad},
    {"Conv3DBackpropInput(input_size, filter, out_backprop; strides:ints, pads:ints, "
     "dilations=[1,1,1,1,1], data_format=\"NDHWC\", padding=\"\", groups=1) -> y",
     3, kInputGrad},
    {"Conv2DBackpropFilter(x, filter_size, out_backprop; strides:ints, pads:ints, "
     "dilations=[1,1,1,1], data_format=\"NHWC\", padding=\"\", groups=1) -> y",
     2, kFilterGrad},
    {"Conv3DBackpropFilter(x, filter_size, out_backprop; strides:ints, pads:ints, "
     "dilations=[1,1,1,1,1], data_format=\"NDHWC\", padding=\"\", groups=1) -> y",
     3, kFilterGrad},
};

// The numbers of a list attribute that belong to the image; the others must be 1.
std::vector<int64_t> ImageNumbers(const OpContext& op, std::string_view attr, int image, bool last,
                                  Check& check) {
  const std::vector<int64_t> list = op.attr_ints(attr);
  const int first = last ? 1 : 2;
  bool fits = static_cast<int>(list.size()) == image + 2;
  std::vector<int64_t> numbers;
  for (int i = 0; fits && i < image + 2; ++i) {
    const int64_t number = list[static_cast<size_t>(i)];
    const bool inside = i >= first && i < first + image;
    fits = number >= 1 && (inside || number == 1);
    if (inside) numbers.push_back(number);
  }
  check.That(fits, "\"{}\" is {}, expected {} numbers, 1 and more for the image and 1 elsewhere",
             attr, Shape(list), image + 2);
  return numbers;
}

// The shape that a constant input names. Objects unless all its dimensions are known.
Shape ShapeFrom(const OpContext& op, std::string_view port, Check& check) {
  Shape shape(check.Take(op.Ints(port)));
  check.Keep(shape.Check().WithContext(op.Who()));
  check.That(shape.is_static(), "{} is {}, expected known dimensions", port, shape);
  return shape;
}

// [batch, channels, image...] of a tensor and the distances along them.
ConvolutionTensor Activation(std::optional<int> slot, const TensorType& type, bool last) {
  std::vector<int64_t> dims = type.shape.dims(), strides = ByteStrides(type.shape, 1);
  for (std::vector<int64_t>* list : {&dims, &strides}) {
    if (last) std::rotate(list->begin() + 1, list->end() - 1, list->end());
  }
  return {slot, type.dtype, std::move(dims), std::move(strides), type.shape.elements()};
}

std::string FilterLayout(const OpContext& op, const ConvolutionRow& row, bool last) {
  const std::string_view fallback = last && row.kind != kLinear ? "HWCN" : "NCHW";
  if (row.kind != kFilterGrad) return LayoutOf(op, op.slot("filter"), fallback);
  const std::string& own = op.node().output_descs[0].layout;
  return own.empty() || own == "ND" ? std::string(fallback) : own;
}

// Conv2D without groups takes as many as the channels of its filter leave, as the vendor's shape
// inference does.
// `filter`: begins with outputs and inputs.
int64_t GroupsOf(const OpContext& op, const ConvolutionRow& row, int64_t channels,
                 const std::vector<int64_t>& filter) {
  if (row.kind == kDepthwise) return channels;
  const int64_t groups = op.attr_int("groups");
  const bool left_open = row.kind == kForward && row.image == 2 && groups == 1;
  if (!left_open || filter[1] <= 0 || channels % filter[1] != 0) return groups;
  const int64_t fitting = channels / filter[1];
  return fitting > 0 && filter[0] % fitting == 0 ? fitting : groups;
}

// [groups, outputs, inputs, image...] of the filter. `channels`: of x.
ConvolutionTensor Filter(const OpContext& op, const ConvolutionRow& row, const TensorType& type,
                         bool last, int64_t channels, Check& check) {
  const int rank = row.image + 2;
  check.That(type.shape.rank() == rank, "\"filter\" is {}, expected {} dimensions", type, rank);
  if (!check.ok()) return {};
  std::optional<int> slot;
  if (row.kind != kFilterGrad) slot = op.slot("filter");
  const std::string layout = FilterLayout(op, row, last);
  const bool behind = layout.starts_with('H') || layout.starts_with('D');  // HWCN, DHWCN
  std::vector<int64_t> dims = type.shape.dims(), strides = ByteStrides(type.shape, 1);
  for (std::vector<int64_t>* list : {&dims, &strides}) {  // outputs, then inputs to the front
    if (behind) std::reverse(list->begin() + row.image, list->end());
    if (behind) std::rotate(list->begin(), list->begin() + row.image, list->end());
  }
  if (row.kind == kDepthwise && behind) {  // [h, w, channels, multiples]
    dims[0] *= dims[1];
    dims[1] = 1;
  }
  const int64_t groups = GroupsOf(op, row, channels, dims);
  check.That(groups >= 1, "{} groups, expected 1 or more", groups);
  if (!check.ok()) return {};
  check.That(dims[0] % groups == 0, "{} filters for {} groups", dims[0], groups);
  dims[0] /= groups;
  dims.insert(dims.begin(), groups);
  strides.insert(strides.begin(), dims[1] * strides[0]);
  if (row.transposed()) {  // reads the dimension of the outputs as its inputs
    std::swap(dims[1], dims[2]);
    std::swap(strides[1], strides[2]);
  }
  return {slot, type.dtype, std::move(dims), std::move(strides), type.shape.elements()};
}

// Positions that a filter covers along each dimension.
std::vector<int64_t> Reach(const Convolution& plan) {
  std::vector<int64_t> reach;
  for (size_t i = 0; i < plan.strides.size(); ++i) {
    reach.push_back(plan.dilations[i] * (plan.filter.dims[3 + i] - 1) + 1);
  }
  return reach;
}

// Padding before and after each dimension, from "pads" or from "padding" SAME or VALID.
void SetPads(const OpContext& op, const std::vector<int64_t>& x, Convolution& plan, Check& check) {
  const std::vector<int64_t> pads = op.attr_ints("pads"), reach = Reach(plan);
  const std::string padding = op.node().StringAttr("padding", "");  // not all have it
  const bool computed = std::count(pads.begin(), pads.end(), -1) > 0;
  check.That(pads.size() == 2 * x.size() && (!computed || padding == "SAME" || padding == "VALID"),
             "\"pads\" are {}, expected {} numbers", Shape(pads), 2 * x.size());
  for (size_t i = 0; check.ok() && i < x.size(); ++i) {
    if (!computed) {
      plan.before.push_back(pads[2 * i]);
      plan.behind.push_back(pads[2 * i + 1]);
    } else {
      const int64_t all = padding == "SAME" ? SamePadding(x[i], plan.strides[i], reach[i]) : 0;
      plan.before.push_back(all / 2);
      plan.behind.push_back(all - all / 2);
    }
    const auto fits = [](int64_t pad) { return pad >= 0 && pad <= INT32_MAX; };
    check.That(fits(plan.before[i]) && fits(plan.behind[i]),
               "\"pads\" are {}, expected none negative", Shape(pads));
  }
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
  std::vector<int64_t> dims = {batch, channels};
  dims.insert(dims.end(), image.begin(), image.end());
  if (last) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return Shape(std::move(dims));
}

// The shape of y of a transpose, which input_size says. Its convolution must give x.
Shape SpreadShape(const OpContext& op, const ConvolutionRow& row, bool last, int64_t outputs,
                  const TensorType& filter, Convolution& plan, Check& check) {
  const std::vector<int64_t> image = ImageOf(plan.x), reach = Reach(plan);
  const Shape y = ShapeFrom(op, "input_size", check);
  if (!check.ok()) return y;
  std::vector<int64_t> spread;
  if (y.rank() == row.image + 2) {
    spread.assign(y.dims().begin() + (last ? 1 : 2), y.dims().end() - (last ? 1 : 0));
    SetPads(op, spread, plan, check);
    if (!check.ok()) return y;
  }
  check.That(!spread.empty() && y == ShapeOf(plan.x.dims[0], outputs, spread, last) &&
                 Gathered(plan, spread) == image,
             "input_size {} does not become \"{}\" {} by filter {}, strides and pads", y, row.x(),
             op.in(row.x()), filter);
  // What the strides leave over belongs after the image.
  for (size_t i = 0; check.ok() && i < spread.size(); ++i) {
    plan.behind[i] = (image[i] - 1) * plan.strides[i] + reach[i] - plan.before[i] - spread[i];
  }
  return y;
}

Shape OutputShape(const OpContext& op, const ConvolutionRow& row, const TensorType& filter,
                  bool last, Convolution& plan, Check& check) {
  if (!check.ok()) return {};
  const std::vector<int64_t>& dims = plan.filter.dims;
  const int64_t inputs = dims[0] * dims[2], outputs = dims[0] * dims[1];
  check.That(plan.x.dims[1] == inputs, "\"{}\" {} has {} channels, the filter {} takes {}", row.x(),
             op.in(row.x()), plan.x.dims[1], filter, inputs);
  if (row.transposed()) return SpreadShape(op, row, last, outputs, filter, plan, check);
  SetPads(op, ImageOf(plan.x), plan, check);
  if (!check.ok()) return {};
  return ShapeOf(plan.x.dims[0], outputs, Gathered(plan, ImageOf(plan.x)), last);
}

void SetBias(const OpContext& op, Convolution& plan, Check& check) {
  if (!op.has("bias") || !check.ok()) return;
  const TensorType& bias = op.in("bias");
  const int64_t outputs = plan.filter.dims[0] * plan.filter.dims[1];
  check.That(kFloatsAndDouble.Contains(bias.dtype) && bias.shape.elements() == outputs,
             "\"bias\" is {}, expected {} floats", bias, outputs);
  plan.bias = ConvolutionTensor{op.slot("bias"), bias.dtype, {outputs}, {1}, outputs};
  plan.bias_value = op.value(*plan.bias->slot);
}

void CheckTypes(const OpContext& op, const ConvolutionRow& row, Check& check) {
  const TensorType& x = op.in(row.x());
  const TypeSet bytes =
      row.kind == kLinear ? TypeSet{DataType::kInt8, DataType::kUint8} : TypeSet(DataType::kInt8);
  check.Keep(ExpectType(op, row.x(), row.of_bytes() ? bytes : kFloats));
  check.Keep(ExpectType(op, row.kind == kFilterGrad ? "out_backprop" : "filter",
                        row.kind == kLinear ? bytes : TypeSet(x.dtype)));
  check.Supported(!row.has_bias() || !op.has("offset_w"),
                  "\"offset_w\" is connected, but only for int8");
  check.That(x.shape.rank() == row.image + 2, "\"{}\" is {}, expected {} dimensions", row.x(), x,
             row.image + 2);
}

Result<Convolution> PlanConvolution(const OpContext& op, const ConvolutionRow& row) {
  Check check(op);
  CheckTypes(op, row, check);
  const int slot = op.slot(row.x());
  const TensorType& x = op.in(slot);
  const bool last = check.Take(ChannelsLast(op, slot, op.attr_string("data_format")));
  Convolution plan;
  plan.who = op.Who();
  plan.threads = op.threads();
  plan.tuning = op.tuning();
  plan.packed = op.packed();
  plan.transposed = row.transposed();
  plan.of_filter = row.kind == kFilterGrad;
  plan.strides = ImageNumbers(op, "strides", row.image, last, check);
  plan.dilations = ImageNumbers(op, "dilations", row.image, last, check);
  if (!check.ok()) return check.status();
  plan.x = Activation(slot, x, last);
  const TensorType filter =
      plan.of_filter ? TensorType{x.dtype, ShapeFrom(op, "filter_size", check)} : op.in("filter");
  plan.filter = Filter(op, row, filter, last, plan.x.dims[1], check);
  if (plan.filter.slot) plan.filter_value = op.value(*plan.filter.slot);
  const Shape y = OutputShape(op, row, filter, last, plan, check);
  if (row.has_bias()) SetBias(op, plan, check);
  check.Keep(y.Check().WithContext(op.Who()));
  if (!check.ok()) return check.status();
  plan.y = Activation(std::nullopt, {x.dtype, y}, last);
  plan.outputs = {{x.dtype, y}};
  if (!plan.of_filter) return plan;
  plan.y.slot = op.slot("out_backprop");
  check.That(op.in("out_backprop").shape == y, "out_backprop is {}, but the convolution gives {}",
             op.in("out_backprop"), y);
  plan.outputs = {filter};
  return check.Done(std::move(plan));
}

// Null: another type.
const ConvolutionRow* FindRow(const OpContext& op) {
  const std::string_view type = op.node().type;
  for (const ConvolutionRow& row : kRows) {
    const bool same = row.signature.starts_with(type) && row.signature[type.size()] == '(';
    if (same) return &row;
  }
  return nullptr;
}

}  // namespace

Result<Convolution> PlanImageConvolution(const OpContext& op) {
  return PlanConvolution(op, *FindRow(op));
}

double ConvolutionFlops(const OpContext& op) {
  const ConvolutionRow* const row = FindRow(op);
  if (row == nullptr || row->kind == kFilterGrad) return 0;
  const Result<Convolution> plan = PlanConvolution(op, *row);
  if (!plan.ok()) return 0;
  const ConvolutionTensor& walked = row->transposed() ? plan->x : plan->y;
  const int64_t pixels = walked.dims[1] > 0 ? walked.elements / walked.dims[1] : 0;
  return 2.0 * static_cast<double>(pixels) * static_cast<double>(plan->filter.elements);
}

Result<Convolution> PlanQuantConvolution(const OpContext& op) {
  return PlanConvolution(op, {.image = 2, .kind = ConvolutionKind::kQuantised});
}

Result<Convolution> PlanLinearConvolution(const OpContext& op) {
  return PlanConvolution(op, {.image = 2, .kind = ConvolutionKind::kLinear});
}

void RegisterConvolutionOps(OpRegistry& registry) {
  for (const ConvolutionRow& row : kRows) {
    Operator op;
    op.schema = Signature(row.signature);
    op.infer = [&row](OpContext& context) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const Convolution plan, PlanConvolution(context, row));
      return define::SetOutputs(context, plan.outputs);
    };
    op.make_kernel = [&row](const OpContext& context) -> Result<std::unique_ptr<Kernel>> {
      NPUMESH_ASSIGN_OR_RETURN(Convolution plan, PlanConvolution(context, row));
      return MakeConvolution(std::move(plan));
    };
    if (row.transposed()) op.value_inputs = {"input_size"};
    if (row.kind == kFilterGrad) op.value_inputs = {"filter_size"};
    if (row.packs) op.weight = WeightTrait{"filter", "FRACTAL_Z", "NCHW"};
    op.precision = PrecisionClass::kWhite;
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
