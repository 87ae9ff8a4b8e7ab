// Convolutions against the sum over all pairs of positions of x and y.
#include "tests/unit/op_test.h"
#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

struct ConvolutionCase {
  Shape x;       // NCHW
  Shape filter;  // OIHW
  int64_t groups;
  Ints strides, dilations, pads;
  Shape y;
  bool bias = false;
};

const ConvolutionCase kConvolutionCases[] = {
    {{1, 1, 3, 3}, {1, 1, 2, 2}, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1, 2, 2}},
    {{2, 3, 5, 4}, {4, 3, 3, 2}, 1, {2, 1}, {1, 1}, {1, 1, 0, 1}, {2, 4, 3, 4}, true},
    {{1, 4, 6, 6}, {6, 2, 3, 3}, 2, {1, 2}, {2, 1}, {2, 2, 1, 1}, {1, 6, 6, 3}, true},
    {{2, 2, 5, 5}, {3, 2, 2, 2}, 1, {2, 2}, {1, 1}, {0, 0, 0, 0}, {2, 3, 2, 2}},
    {{0, 2, 4, 4}, {3, 2, 2, 2}, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, {0, 3, 3, 3}},
};

// Calls visit(position in x, position in the filter, position in y) for every product.
template <typename Visit>
void ForProducts(const ConvolutionCase& test, Visit visit) {
  const size_t image = test.strides.size();
  const int64_t share = test.y[1] / test.groups;
  for (const Ints& y : Positions(test.y)) {
    for (const Ints& f : Positions(test.filter)) {
      if (f[0] != y[1]) continue;
      Ints x = {y[0], y[1] / share * test.filter[1] + f[1]};
      bool inside = true;
      for (size_t d = 0; d < image; ++d) {
        x.push_back(y[2 + d] * test.strides[d] + f[2 + d] * test.dilations[d] - test.pads[2 * d]);
        inside = inside && x.back() >= 0 && x.back() < test.x.dims()[2 + d];
      }
      if (inside) visit(x, f, y);
    }
  }
}

AttrValue Full(const Ints& image, bool last) {
  Ints list = {1};
  if (!last) list.push_back(1);
  list.insert(list.end(), image.begin(), image.end());
  if (last) list.push_back(1);
  return AttrValue::Ints(list);
}

Attrs AttrsOf(const ConvolutionCase& test, bool last) {
  const bool flat = test.strides.size() == 2;
  return {{"strides", Full(test.strides, last)},
          {"dilations", Full(test.dilations, last)},
          {"pads", AttrValue::Ints(test.pads)},
          {"groups", AttrValue::Int(test.groups)},
          {"data_format",
           AttrValue::String(flat ? (last ? "NHWC" : "NCHW") : (last ? "NDHWC" : "NCDHW"))}};
}

// OIHW to HWIO.
Tensor ImageFirst(const Tensor& filter) {
  Ints dims = filter.shape().dims();
  std::rotate(dims.begin(), dims.begin() + 2, dims.end());
  std::swap(dims[dims.size() - 2], dims[dims.size() - 1]);
  std::vector<double> values;
  for (Ints at : Positions(Shape(dims))) {
    std::swap(at[at.size() - 2], at[at.size() - 1]);
    std::rotate(at.begin(), at.end() - 2, at.end());
    values.push_back(ToDoubles(filter)[Index(filter.shape(), at)]);
  }
  return FromDoubles(filter.dtype(), Shape(dims), values);
}

Tensor Expected(const ConvolutionCase& test, const Tensor& x, const Tensor& filter) {
  std::vector<double> y(static_cast<size_t>(test.y.elements()), 0);
  const std::vector<double> x_values = ToDoubles(x), filter_values = ToDoubles(filter);
  ForProducts(test, [&](const Ints& at_x, const Ints& at_f, const Ints& at_y) {
    y[Index(test.y, at_y)] +=
        x_values[Index(test.x, at_x)] * filter_values[Index(test.filter, at_f)];
  });
  for (const Ints& at : Positions(test.y)) {
    if (test.bias) y[Index(test.y, at)] += static_cast<double>(at[1]);
  }
  return FromDoubles(x.dtype(), test.y, y);
}

// 0, 1, 2 ...
Tensor Bias(DataType dtype, int64_t channels) {
  std::vector<double> values(static_cast<size_t>(channels));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return FromDoubles(dtype, Shape({channels}), values);
}

TEST(Convolution, InBothLayoutsAndEveryFloat) {
  for (const ConvolutionCase& test : kConvolutionCases) {
    for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
      const Tensor x = Pattern(dtype, test.x), filter = Pattern(dtype, test.filter, 2);
      const Tensor want = Expected(test, x, filter);
      for (const bool last : {false, true}) {
        OpCall call{.type = "Conv2D",
                    .inputs = {{"x", last ? ChannelsBehind(x) : x},
                               {"filter", last ? ImageFirst(filter) : filter}},
                    .attrs = AttrsOf(test, last)};
        if (test.bias) call.inputs.push_back({"bias", Bias(DataType::kFloat, test.y[1])});
        EXPECT_TRUE(SameBytes(RunOne(call), last ? ChannelsBehind(want) : want))
            << test.x.ToString() << " " << test.filter.ToString() << (last ? " NHWC" : " NCHW");
      }
    }
  }
}

const ConvolutionCase kCube = {{1, 2, 3, 4, 3},    {4, 1, 2, 2, 3}, 2, {1, 2, 1}, {1, 1, 1},
                               {0, 1, 0, 0, 1, 1}, {1, 4, 3, 2, 3}};

TEST(Convolution, OfThreeDimensions) {
  const Tensor x = Pattern(DataType::kFloat, kCube.x),
               filter = Pattern(DataType::kFloat, kCube.filter);
  const Tensor want = Expected(kCube, x, filter);
  EXPECT_TRUE(SameBytes(RunOne({.type = "Conv3D",
                                .inputs = {{"x", x}, {"filter", filter}},
                                .attrs = AttrsOf(kCube, false)}),
                        want));
}

TEST(Convolution, Depthwise) {
  // two filters for each of three channels
  const ConvolutionCase test = {{1, 3, 4, 4}, {6, 1, 2, 3}, 3,           {1, 1},
                                {1, 1},       {0, 1, 1, 1}, {1, 6, 4, 4}};
  const Tensor x = Pattern(DataType::kFloat, test.x),
               filter = Pattern(DataType::kFloat, test.filter);
  const Tensor want = Expected(test, x, filter);
  Attrs attrs = AttrsOf(test, false);
  std::erase_if(attrs, [](const auto& attr) { return attr.first == "groups"; });
  EXPECT_TRUE(SameBytes(
      RunOne({.type = "DepthwiseConv2D", .inputs = {{"x", x}, {"filter", filter}}, .attrs = attrs}),
      want));
  // [h, w, channels, multiples]
  const Shape hwcm = {2, 3, 3, 2};
  std::vector<double> values;
  for (const Ints& at : Positions(hwcm)) {
    values.push_back(ToDoubles(filter)[Index(test.filter, {at[2] * 2 + at[3], 0, at[0], at[1]})]);
  }
  attrs = AttrsOf(test, true);
  std::erase_if(attrs, [](const auto& attr) { return attr.first == "groups"; });
  EXPECT_TRUE(SameBytes(RunOne({.type = "DepthwiseConv2D",
                                .inputs = {{"x", ChannelsBehind(x)},
                                           {"filter", FromDoubles(DataType::kFloat, hwcm, values)}},
                                .attrs = attrs}),
                        ChannelsBehind(want)));
}

// The transpose of a convolution sends dy back along every product.
Tensor Spread(const ConvolutionCase& test, const Tensor& dy, const Tensor& filter) {
  std::vector<double> dx(static_cast<size_t>(test.x.elements()), 0);
  const std::vector<double> dy_values = ToDoubles(dy), filter_values = ToDoubles(filter);
  ForProducts(test, [&](const Ints& at_x, const Ints& at_f, const Ints& at_y) {
    dx[Index(test.x, at_x)] +=
        dy_values[Index(test.y, at_y)] * filter_values[Index(test.filter, at_f)];
  });
  return FromDoubles(dy.dtype(), test.x, dx);
}

TEST(Convolution, TransposesAreGradientsOfTheInput) {
  std::vector<ConvolutionCase> cases(std::begin(kConvolutionCases), std::end(kConvolutionCases));
  cases.push_back(kCube);
  for (const ConvolutionCase& test : cases) {
    const Tensor dy = Pattern(DataType::kFloat, test.y),
                 filter = Pattern(DataType::kFloat, test.filter);
    const Tensor want = Spread(test, dy, filter);
    const std::string size = test.strides.size() == 2 ? "Conv2D" : "Conv3D";
    const OpInput input_size = {"input_size", MakeInts(test.x.dims())};
    EXPECT_TRUE(SameBytes(RunOne({.type = size + "BackpropInput",
                                  .inputs = {input_size, {"filter", filter}, {"out_backprop", dy}},
                                  .attrs = AttrsOf(test, false)}),
                          want))
        << test.x.ToString();
    EXPECT_TRUE(SameBytes(RunOne({.type = size + "Transpose",
                                  .inputs = {input_size, {"x", dy}, {"filter", filter}},
                                  .attrs = AttrsOf(test, false)}),
                          want))
        << test.x.ToString();
  }
}

// The gradient of a filter element is the sum of all products that it takes part in.
TEST(Convolution, GradientOfTheFilter) {
  std::vector<ConvolutionCase> cases(std::begin(kConvolutionCases), std::end(kConvolutionCases));
  cases.push_back(kCube);
  for (const ConvolutionCase& test : cases) {
    const bool flat = test.strides.size() == 2;
    for (const DataType dtype : {DataType::kFloat, DataType::kFloat16}) {
      const Tensor x = Pattern(dtype, test.x), dy = Pattern(dtype, test.y, 2);
      std::vector<double> sums(static_cast<size_t>(test.filter.elements()), 0);
      const std::vector<double> x_values = ToDoubles(x), dy_values = ToDoubles(dy);
      ForProducts(test, [&](const Ints& at_x, const Ints& at_f, const Ints& at_y) {
        sums[Index(test.filter, at_f)] +=
            x_values[Index(test.x, at_x)] * dy_values[Index(test.y, at_y)];
      });
      const Tensor want = FromDoubles(dtype, test.filter, sums);
      for (const bool last : {false, true}) {
        if (last && !flat) continue;
        const Tensor size = MakeInts((last ? ImageFirst(want) : want).shape().dims());
        const Tensor found = RunOne({.type = flat ? "Conv2DBackpropFilter" : "Conv3DBackpropFilter",
                                     .inputs = {{"x", last ? ChannelsBehind(x) : x},
                                                {"filter_size", size},
                                                {"out_backprop", last ? ChannelsBehind(dy) : dy}},
                                     .attrs = AttrsOf(test, last)});
        EXPECT_TRUE(SameBytes(found, last ? ImageFirst(want) : want)) << test.x.ToString();
      }
    }
  }
}

TEST(Convolution, SaysWhatOneDnnComputesItIn) {
  const ConvolutionCase& good = kConvolutionCases[0];
  const auto chosen = [&](DataType dtype) {
    return ChoiceOf(
        {.type = "Conv2D",
         .inputs = {{"x", Pattern(dtype, good.x)}, {"filter", Pattern(dtype, good.filter)}},
         .attrs = AttrsOf(good, false)});
  };
  EXPECT_THAT(chosen(DataType::kFloat), testing::StartsWith("native, oneDNN "));
  EXPECT_THAT(chosen(DataType::kFloat16),
              testing::AllOf(testing::StartsWith("widened, oneDNN "),
                             testing::EndsWith("; not native: float16 is computed in float32")));
}

// A filter of fewer channels than the image says how many groups there are.
TEST(Convolution, GroupsThatAreNotSaid) {
  for (ConvolutionCase test : kConvolutionCases) {
    const Tensor x = Pattern(DataType::kFloat, test.x),
                 filter = Pattern(DataType::kFloat, test.filter, 2);
    const Tensor want = Expected(
        {test.x, test.filter, test.groups, test.strides, test.dilations, test.pads, test.y, false},
        x, filter);
    test.groups = 1;
    EXPECT_TRUE(SameBytes(RunOne({.type = "Conv2D",
                                  .inputs = {{"x", x}, {"filter", filter}},
                                  .attrs = AttrsOf(test, false)}),
                          want))
        << test.x.ToString() << " " << test.filter.ToString();
  }
}

}  // namespace
}  // namespace npumesh
