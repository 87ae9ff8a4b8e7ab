// Gradients of pooling and padding, pooling of volumes, sampling by a grid.
#include "tests/unit/op_gradient.h"

namespace npumesh {
namespace {

using Attrs = std::vector<std::pair<std::string, AttrValue>>;
using Ints = std::vector<int64_t>;
constexpr DataType kDouble = DataType::kDouble, kFloat = DataType::kFloat;

TEST(AvgPoolGrad, IsTheSlope) {
  struct Case {
    const char* format;
    Shape x;
    Attrs attrs;
  };
  const auto ints = [](const Ints& list) { return AttrValue::Ints(list); };
  const Case cases[] = {
      {"NCHW", {2, 2, 5, 4}, {{"ksize", ints({1, 1, 3, 2})}, {"strides", ints({1, 1, 2, 1})}}},
      {"NCHW",
       {1, 2, 5, 5},
       {{"ksize", ints({1, 1, 3, 3})},
        {"strides", ints({1, 1, 2, 2})},
        {"pads", ints({1, 1, 0, 1})},
        {"ceil_mode", AttrValue::Bool(true)},
        {"exclusive", AttrValue::Bool(false)}}},
      {"NHWC",
       {1, 4, 4, 2},
       {{"ksize", ints({1, 3, 3, 1})},
        {"strides", ints({1, 2, 2, 1})},
        {"padding_mode", AttrValue::String("SAME")}}},
      {"NCHW",
       {1, 1, 4, 4},
       {{"ksize", ints({1, 1, 2, 2})},
        {"strides", ints({1, 1, 2, 2})},
        {"divisor_override", AttrValue::Int(3)}}},
      {"NCHW",
       {2, 1, 3, 4},
       {{"ksize", ints({1, 1, 1, 1})},
        {"strides", ints({1, 1, 1, 1})},
        {"global_pooling", AttrValue::Bool(true)}}},
  };
  for (const Case& test : cases) {
    Attrs attrs = test.attrs;
    attrs.emplace_back("data_format", AttrValue::String(test.format));
    const OpCall forward = {
        .type = "AvgPoolV2", .inputs = {{"x", Waves(kDouble, test.x)}}, .attrs = attrs};
    const Tensor dy = Waves(kDouble, RunOne(forward).shape(), 4);
    const Tensor dx =
        RunOne({.type = "AvgPoolV2Grad",
                .inputs = {{"orig_input_shape", MakeInts(test.x.dims())}, {"input_grad", dy}},
                .attrs = attrs});
    ExpectGradient(forward, "x", dy, dx);
  }
}

TEST(AdaptiveAvgPoolGrad, IsTheSlope) {
  for (const Shape& shape : {Shape{2, 3, 5, 4}, Shape{3, 5, 4}}) {
    const OpCall forward = {.type = "AdaptiveAvgPool2d",
                            .inputs = {{"x", Waves(kDouble, shape)}},
                            .attrs = {{"output_size", AttrValue::Ints({3, 2})}}};
    const Tensor dy = Waves(kDouble, RunOne(forward).shape(), 4);
    const Tensor dx = RunOne({.type = "AdaptiveAvgPool2dGrad",
                              .inputs = {{"input_grad", dy}},
                              .attrs = {{"orig_input_shape", AttrValue::Ints(shape.dims())}}});
    EXPECT_EQ(dx.shape(), shape);
    ExpectGradient(forward, "x", dy, dx);
  }
}

// With the indices that the forward operator gives, and with the pooled values that graphs of
// TorchAir hand on in their place.
TEST(MaxPoolGrad, IsTheSlope) {
  const Attrs attrs = {{"ksize", AttrValue::Ints({1, 3, 2, 1})},
                       {"strides", AttrValue::Ints({1, 2, 1, 1})},
                       {"pads", AttrValue::Ints({1, 1, 0, 1})}};
  const Tensor x = Waves(kDouble, {2, 2, 5, 4});
  const OpCall forward = {.type = "MaxPoolWithArgmaxV1", .inputs = {{"x", x}}, .attrs = attrs};
  const std::vector<Tensor> pooled = Outputs(forward);
  const Tensor dy = Waves(kDouble, pooled[0].shape(), 4);
  const Tensor values = FromDoubles(DataType::kInt64, dy.shape(), ToDoubles(pooled[0]));
  for (const Tensor& argmax : {pooled[1], values}) {
    const Tensor dx = RunOne({.type = "MaxPoolGradWithArgmaxV1",
                              .inputs = {{"x", x}, {"grad", dy}, {"argmax", argmax}},
                              .attrs = attrs});
    ExpectGradient(forward, "x", dy, dx);
  }
}

// ---- volumes ----

TEST(MaxPool3D, FindsMaximumAndItsPlace) {
  for (const bool last : {false, true}) {
    const Shape shape = last ? Shape{2, 4, 5, 3, 2} : Shape{2, 2, 4, 5, 3};
    const Tensor x = Waves(kFloat, shape);
    const Ints kernel = {2, 3, 2}, strides = {2, 1, 1}, pads = {0, 1, 1}, dilation = {1, 2, 1};
    const std::vector<Tensor> out =
        Outputs({.type = "MaxPool3DWithArgmaxV2",
                 .inputs = {{"x", x}},
                 .attrs = {{"ksize", AttrValue::Ints(kernel)},
                           {"strides", AttrValue::Ints(strides)},
                           {"pads", AttrValue::Ints(pads)},
                           {"dilation", AttrValue::Ints(dilation)},
                           {"data_format", AttrValue::String(last ? "NDHWC" : "NCDHW")},
                           {"dtype", AttrValue::Int(9)}}});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[1].dtype(), DataType::kInt64);
    EXPECT_EQ(out[0].shape(), last ? Shape({2, 2, 3, 4, 2}) : Shape({2, 2, 2, 3, 4}));
    const size_t first = last ? 1 : 2;
    const std::vector<double> values = ToDoubles(x);
    for (const Ints& at : Positions(out[0].shape())) {
      double most = -1e9, place = -1;
      for (const Ints& tap : Positions(Shape(kernel))) {
        Ints source = at;
        bool inside = true;
        double flat = 0;
        for (size_t d = 0; d < 3; ++d) {
          source[first + d] = at[first + d] * strides[d] - pads[d] + tap[d] * dilation[d];
          const int64_t extent = shape.dims()[first + d];
          inside = inside && source[first + d] >= 0 && source[first + d] < extent;
          flat = flat * static_cast<double>(extent) + static_cast<double>(source[first + d]);
        }
        if (!inside || values[Index(shape, source)] <= most) continue;
        most = values[Index(shape, source)];
        place = flat;
      }
      EXPECT_EQ(ToDoubles(out[0])[Index(out[0].shape(), at)], most);
      EXPECT_EQ(ToDoubles(out[1])[Index(out[0].shape(), at)], place);
    }
  }
}

// ---- padding ----

TEST(PadGrad, IsTheSlope) {
  for (const char* mode : {"reflect", "edge", "symmetric", "constant"}) {
    for (const bool contiguous : {true, false}) {
      const Ints pairs = {0, 0, 2, 1, 1, 2}, apart = {0, 2, 1, 0, 1, 2};
      const Tensor paddings = MakeInts(contiguous ? pairs : apart);
      const Attrs attrs = {{"mode", AttrValue::String(mode)},
                           {"paddings_contiguous", AttrValue::Bool(contiguous)}};
      const OpCall forward = {.type = "PadV3",
                              .inputs = {{"x", Waves(kDouble, {2, 3, 4})}, {"paddings", paddings}},
                              .attrs = attrs};
      const Tensor dy = Waves(kDouble, {2, 6, 7}, 3);
      const Tensor dx = RunOne(
          {.type = "PadV3Grad", .inputs = {{"x", dy}, {"paddings", paddings}}, .attrs = attrs});
      EXPECT_EQ(dx.shape(), Shape({2, 3, 4}));
      ExpectGradient(forward, "x", dy, dx);
    }
  }
}

// ---- sampling ----

// Coordinates in and around [-1, 1].
Tensor Grid(Shape shape) {
  return Scaled(Waves(kDouble, std::move(shape), 0.3), 1.4, 0.05);
}

TEST(GridSample, GradientIsTheSlope) {
  for (const char* mode : {"bilinear", "nearest", "bicubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool align : {false, true}) {
        const Tensor x = Waves(kDouble, {2, 2, 4, 3}), grid = Grid({2, 3, 2, 2}),
                     dy = Waves(kDouble, {2, 2, 3, 2}, 6);
        const Attrs attrs = {{"interpolation_mode", AttrValue::String(mode)},
                             {"padding_mode", AttrValue::String(padding)},
                             {"align_corners", AttrValue::Bool(align)}};
        const OpCall forward = {
            .type = "GridSampler2D", .inputs = {{"x", x}, {"grid", grid}}, .attrs = attrs};
        const std::vector<Tensor> grad =
            Outputs({.type = "GridSampler2DGrad",
                     .inputs = {{"grad", dy}, {"x", x}, {"grid", grid}},
                     .attrs = attrs});
        SCOPED_TRACE(std::string(mode) + " " + padding);
        ExpectGradient(forward, "x", dy, grad[0]);
        ExpectGradient(forward, "grid", dy, grad[1]);
      }
    }
  }
}

TEST(GridSample, ReadsVolumes) {
  for (const bool last : {false, true}) {
    const Shape shape = last ? Shape{1, 2, 2, 2, 2} : Shape{1, 2, 2, 2, 2};
    const Tensor x = Waves(kFloat, shape);
    // Column 1, row 0 and the middle between both depths.
    const Tensor grid = FromDoubles(kFloat, {1, 1, 1, 1, 3}, {1, -1, 0});
    const Tensor y =
        RunOne({.type = "GridSampler3D",
                .inputs = {{"x", x}, {"grid", grid}},
                .attrs = {{"align_corners", AttrValue::Bool(true)},
                          {"data_format", AttrValue::String(last ? "NDHWC" : "NCDHW")}}});
    EXPECT_EQ(y.shape(), last ? Shape({1, 1, 1, 1, 2}) : Shape({1, 2, 1, 1, 1}));
    for (int64_t c = 0; c < 2; ++c) {
      const auto at = [&](int64_t depth) {
        const Ints place = last ? Ints{0, depth, 0, 1, c} : Ints{0, c, depth, 0, 1};
        return ToDoubles(x)[Index(shape, place)];
      };
      EXPECT_NEAR(ToDoubles(y)[static_cast<size_t>(c)], (at(0) + at(1)) / 2, 1e-7);
    }
  }
}

}  // namespace
}  // namespace npumesh
