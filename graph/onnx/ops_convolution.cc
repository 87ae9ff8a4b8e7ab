// Convolutions and their transposes. Those over rows become ones over images with one row.
#include <algorithm>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"
#include "graph/onnx/window.h"

namespace npumesh {
namespace {

// A dimension of 1 in front of the others, for images of one dimension.
void AddRow(SlidingWindow& window) {
  for (auto* list : {&window.kernel, &window.strides, &window.dilations}) {
    list->insert(list->begin(), 1);
  }
  for (auto* list : {&window.before, &window.behind}) list->insert(list->begin(), 0);
}

// The sizes of a filter [.., .., image...].
std::vector<int64_t> KernelOf(Lowering& at, Value filter) {
  std::vector<int64_t> kernel;
  for (int d = 2; d < at.Rank(filter); ++d) kernel.push_back(at.Dim(filter, d));
  return kernel;
}

Lowering::Attrs ConvolutionAttrs(Lowering& at, const SlidingWindow& window) {
  return {{"strides", WithOnes(window.strides)},
          {"pads", PadPairs(window)},
          {"dilations", WithOnes(window.dilations)},
          {"groups", at.Int("group", 1)},
          {"data_format", window.dims() == 3 ? "NCDHW" : "NCHW"}};
}

bool SupportedImage(Lowering& at, int dims) {
  if (dims >= 1 && dims <= 3) return at.ok();
  at.Refuse("an image of {} dimensions; npumesh has convolutions of 1 to 3", dims);
  return false;
}

// The windows of a filter over x. Errors: there is no such convolution.
SlidingWindow ConvolutionWindow(Lowering& at, Value x, Value filter) {
  SlidingWindow window = WindowFrom(at, x, KernelOf(at, filter));
  PadForSame(at, x, window);
  if (!SupportedImage(at, window.dims())) return window;
  for (size_t d = 0; d < window.size(); ++d) {
    const int64_t image = at.KnownSize(x, static_cast<int>(d) + 2);
    const int64_t padded = image + window.before[d] + window.behind[d];
    if (image < 0 || window.extent(d) <= padded) continue;
    at.Fail(Code::kCorrupt, "the kernel covers {} places of dimension {}, which has {} with pads",
            window.extent(d), d + 2, padded);
    break;
  }
  return window;
}

Value Convolved(Lowering& at, Value x, Value filter, std::optional<Value> bias) {
  SlidingWindow window = ConvolutionWindow(at, x, filter);
  if (!at.ok()) return {};
  const bool row = window.dims() == 1;
  if (row) {
    AddRow(window);
    x = at.Unsqueeze(x, {2});
    filter = at.Unsqueeze(filter, {2});
  }
  const Lowering::Inputs inputs = {x, filter, bias};
  const std::string type = window.dims() == 3 ? "Conv3D" : "Conv2D";
  const Lowering::Attrs attrs = ConvolutionAttrs(at, window);
  return row ? at.Squeeze(at.Op(type, inputs, attrs), {2}) : at.Node(type, inputs, attrs);
}

void LowerConv(Lowering& at) {
  at.Out(0, Convolved(at, at.in(0), at.in(1), at.Given(2)));
}

// ---- transposes ----

// The pads that an output_shape or auto_pad asks for; returns the sizes of the outputs.
std::vector<int64_t> OutputSizes(Lowering& at, Value x, SlidingWindow& window,
                                 const std::vector<int64_t>& extra) {
  const std::vector<int64_t> asked = at.IntList("output_shape");
  std::vector<int64_t> sizes;
  if (!asked.empty() && asked.size() < window.size()) {
    at.Fail(Code::kCorrupt, "\"output_shape\" has {} entries, expected {}", asked.size(),
            window.size());
    return sizes;
  }
  for (size_t d = 0; d < window.size(); ++d) {
    const int64_t image = at.Dim(x, static_cast<int>(d) + 2);
    const int64_t full = (image - 1) * window.strides[d] + window.extent(d) + extra[d];
    int64_t wanted = full - window.before[d] - window.behind[d];
    if (!asked.empty() || window.same) {
      wanted = asked.empty() ? image * window.strides[d] : asked[asked.size() - window.size() + d];
      const int64_t cut = std::max<int64_t>(full - wanted, 0);
      const bool upper = window.same && !window.lower;
      window.before[d] = upper ? cut / 2 : cut - cut / 2;
      window.behind[d] = cut - window.before[d];
    }
    sizes.push_back(wanted);
  }
  return sizes;
}

// [N, channels, sizes...]
Value SizeOperand(Lowering& at, Value x, int64_t channels, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> rest = {channels};
  rest.insert(rest.end(), sizes.begin(), sizes.end());
  const int64_t batch = at.KnownSize(x, 0);
  if (batch < 0) return at.Concat({at.DimOf(x, 0), at.Ints(rest)}, 0);
  rest.insert(rest.begin(), batch);
  return at.Ints(rest);
}

// Whether the sizes of the outputs follow from sizes of the image that are open. Pads that an
// output_shape or auto_pad asks for need known ones.
bool HasOpenSizes(Lowering& at, Value x, const SlidingWindow& window) {
  if (window.same || at.has_attr("output_shape") || at.Rank(x) != window.dims() + 2) return false;
  const std::vector<int64_t>& dims = at.shape(x).dims();
  return std::any_of(dims.begin() + 2, dims.end(), [](int64_t dim) { return dim < 0; });
}

// [N, channels, sizes...], computed from the shape of x while the model runs.
Value OpenSizeOperand(Lowering& at, Value x, int64_t channels, const SlidingWindow& window,
                      const std::vector<int64_t>& extra) {
  std::vector<Value> images;
  std::vector<int64_t> added;  // output = image * stride + added
  for (size_t d = 0; d < window.size(); ++d) {
    images.push_back(at.DimOf(x, static_cast<int64_t>(d) + 2));
    added.push_back(window.extent(d) + extra[d] - window.strides[d] - window.before[d] -
                    window.behind[d]);
  }
  const Value sizes = at.Add(at.Mul(at.Concat(images, 0), at.Ints(window.strides)), at.Ints(added));
  return at.Concat({at.DimOf(x, 0), at.Ints({channels}), sizes}, 0);
}

void LowerConvTranspose(Lowering& at) {
  Value x = at.in(0), filter = at.in(1);
  SlidingWindow window = WindowFrom(at, x, KernelOf(at, filter));
  const int64_t channels = at.Dim(filter, 1) * at.Int("group", 1);
  if (at.Rank(x) < 3 || !SupportedImage(at, window.dims())) return;
  std::vector<int64_t> extra = at.IntList("output_padding");
  if (extra.empty()) extra.assign(window.size(), 0);
  if (extra.size() != window.size()) {
    at.Fail(Code::kCorrupt, "\"output_padding\" has {} entries, expected {}", extra.size(),
            window.size());
    return;
  }
  const bool open = HasOpenSizes(at, x, window);
  std::vector<int64_t> sizes;
  if (!open) sizes = OutputSizes(at, x, window, extra);
  const bool row = window.dims() == 1;
  if (row) {
    AddRow(window);
    sizes.insert(sizes.begin(), 1);
    extra.insert(extra.begin(), 0);
    x = at.Unsqueeze(x, {2});
    filter = at.Unsqueeze(filter, {2});
  }
  const Value size =
      open ? OpenSizeOperand(at, x, channels, window, extra) : SizeOperand(at, x, channels, sizes);
  const Lowering::Inputs inputs = {size, x, filter, at.Given(2)};
  Lowering::Attrs attrs = ConvolutionAttrs(at, window);
  std::vector<int64_t> padding = {0, 0};
  padding.insert(padding.end(), extra.begin(), extra.end());
  attrs.emplace_back("output_padding", padding);
  const std::string type = window.dims() == 3 ? "Conv3DTranspose" : "Conv2DTranspose";
  const Value y = row ? at.Op(type, inputs, attrs) : at.Node(type, inputs, attrs);
  if (open) {
    const std::vector<int64_t> shape(static_cast<size_t>(at.Rank(x)), kUnknownDim);
    at.emitter().Hint(y, {at.dtype(x), Shape(shape)});
  }
  at.Out(0, row ? at.Squeeze(y, {2}) : y);
}

// ---- quantised ----

// What is convolved, and what becomes of the sums: y = round((sum + bias) * scale) + zero, or the
// sums themselves, as int32.
struct ByteConvolution {
  Value x, filter;
  std::optional<Value> x_zero, filter_zero, bias, scale, y_zero;

  DataType dtype(Lowering& at) const { return y_zero ? at.dtype(*y_zero) : DataType::kInt32; }
};

// Whether QLinearConv of ours convolves so: constant filters over images of one or two dimensions.
bool IsOneNode(Lowering& at, const ByteConvolution& form) {
  const int rank = at.Rank(form.x);
  const int64_t outputs = at.KnownSize(form.filter, 0);
  const auto has = [&](const std::optional<Value>& value, int64_t many) {
    if (!value) return true;
    const Shape& shape = at.shape(*value);
    return shape.is_static() && (shape.elements() == 1 || shape.elements() == many);
  };
  const bool fits = has(form.x_zero, 1) && has(form.filter_zero, outputs) &&
                    has(form.scale, outputs) && has(form.y_zero, 1);
  const bool known = at.emitter().stored(form.filter) != nullptr &&
                     (!form.filter_zero || at.emitter().stored(*form.filter_zero) != nullptr);
  return fits && known && (rank == 3 || rank == 4) && at.shape(form.filter).elements() > 0;
}

Value OneNode(Lowering& at, const ByteConvolution& form) {
  SlidingWindow window = ConvolutionWindow(at, form.x, form.filter);
  if (!at.ok()) return {};
  const bool row = window.dims() == 1;
  if (row) AddRow(window);
  const auto along = [](const std::vector<int64_t>& numbers) {
    return std::vector<int64_t>{1, numbers[0], numbers[1], 1};
  };
  const Value image = row ? at.Unsqueeze(form.x, {2}) : form.x;
  const Value filter = row ? at.Unsqueeze(form.filter, {2}) : form.filter;
  const Value y = at.Op("QLinearConv",
                        {ChannelsLast(at, image), filter, form.x_zero, form.filter_zero, form.bias,
                         form.scale, form.y_zero},
                        {{"dtype", form.dtype(at)},
                         {"strides", along(window.strides)},
                         {"pads", PadPairs(window)},
                         {"dilations", along(window.dilations)},
                         {"groups", at.Int("group", 1)},
                         {"data_format", "NHWC"}});
  const Value second = ChannelsSecond(at, y);
  return row ? at.Squeeze(second, {2}) : second;
}

// Products of bytes less their zeros are below 2^16: so many may be added in float32.
constexpr int64_t kMostTerms = 256;

// The convolution of bytes less their zeros, as int32. Channels are convolved in groups that are
// exact in float32, as long as one filter of one channel is.
Value ConvolvedBytes(Lowering& at, Value x, Value filter, std::optional<Value> x_zero,
                     std::optional<Value> filter_zero) {
  const auto centred = [&](Value v, std::optional<Value> zero, bool rows) {
    const Value wide = at.Cast(v, DataType::kFloat);
    if (!zero) return wide;
    return at.Sub(wide, AlongAxis(at, at.Cast(*zero, DataType::kFloat), rows ? at.Rank(v) : 1, 0));
  };
  if (!AreBytes(at, x, filter)) return x;
  const Value left = centred(x, x_zero, false), right = centred(filter, filter_zero, true);
  const auto convolved = [&](Value a, Value b) {
    return at.Cast(Convolved(at, a, b, std::nullopt), DataType::kInt32);
  };
  int64_t image = 1;
  for (const int64_t size : KernelOf(at, filter)) {
    if (!at.Affords(image, size)) return left;
    image = std::max<int64_t>(image * size, 1);
  }
  const int64_t channels = at.Dim(filter, 1), each = std::max<int64_t>(kMostTerms / image, 1);
  if (!at.Affords(channels)) return left;
  if (channels <= each || at.Int("group", 1) != 1) return convolved(left, right);
  Value sum;
  for (int64_t c = 0; c < channels && at.ok(); c += each) {
    const int64_t end = std::min(channels, c + each);
    const Value part = convolved(at.Slice(left, 1, c, end), at.Slice(right, 1, c, end));
    sum = c == 0 ? part : at.Add(sum, part);
  }
  return sum;
}

void LowerConvInteger(Lowering& at) {
  const ByteConvolution form = {at.in(0), at.in(1), at.Given(2), at.Given(3), {}, {}, {}};
  if (!AreBytes(at, form.x, form.filter)) return;
  if (IsOneNode(at, form)) return at.Out(0, OneNode(at, form));
  at.Out(0, ConvolvedBytes(at, at.in(0), at.in(1), at.Given(2), at.Given(3)));
}

// Inputs: x, its scale and zero, w, its scale and zero, scale and zero of y, bias (int32 with scale
// x_scale * w_scale).
void LowerQLinearConv(Lowering& at) {
  const Value y_zero = at.in(7);
  if (!AreBytes(at, y_zero, y_zero)) return;
  if (at.has(8) && at.dtype(at.in(8)) != DataType::kInt32) {
    return at.Fail(Code::kCorrupt, "a bias of {}; expected int32", Name(at.dtype(at.in(8))));
  }
  if (!AreBytes(at, at.in(0), at.in(3))) return;
  const auto flat = [&](int input) { return at.Reshape(at.in(input), {-1}); };
  const ByteConvolution form = {.x = at.in(0),
                                .filter = at.in(3),
                                .x_zero = at.in(2),
                                .filter_zero = at.in(5),
                                .bias = at.Given(8),
                                .scale = at.Div(at.Mul(flat(1), flat(4)), flat(6)),
                                .y_zero = y_zero};
  if (IsOneNode(at, form)) return at.Out(0, OneNode(at, form));
  Value y = ConvolvedBytes(at, at.in(0), at.in(3), at.in(2), at.in(5));
  const int rank = at.Rank(y);
  if (!at.ok()) return;
  if (at.has(8)) y = at.Add(y, AlongAxis(at, at.in(8), rank, 1));
  const Value scale =
      at.Div(at.Mul(AlongAxis(at, at.in(1), rank, 1), AlongAxis(at, at.in(4), rank, 1)),
             AlongAxis(at, at.in(6), rank, 1));
  y = at.Mul(at.Cast(y, DataType::kFloat), scale);
  at.Out(0, Quantised(at, y, at.Reshape(y_zero, {}), at.dtype(y_zero)));
}

}  // namespace

void AddConvolutionRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"Conv", 1, LowerConv, "Conv2D, Conv3D",
       "T=R T T? auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints "
       "strides:ints"},
      {"ConvInteger", 10, LowerConvInteger, "QLinearConv; Conv2D, Cast",
       "T=Y U=Y T? U? auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints "
       "strides:ints"},
      {"ConvTranspose", 1, LowerConvTranspose, "Conv2DTranspose, Conv3DTranspose",
       "T=R T T? auto_pad:string dilations:ints group:int kernel_shape:ints output_padding:ints "
       "output_shape:ints pads:ints strides:ints"},
      {"QLinearConv", 10, LowerQLinearConv, "QLinearConv; Conv2D, Rint, Cast",
       "T=Y F T U=Y F U F Y J? auto_pad:string dilations:ints group:int kernel_shape:ints "
       "pads:ints "
       "strides:ints"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
