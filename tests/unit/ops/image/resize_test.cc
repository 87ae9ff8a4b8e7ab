// ResizeNearestNeighborV2, ResizeBilinearV2, ResizeNearestNeighborV2Grad.
// UpsampleBicubic2d, UpsampleBicubic2dAA, UpsampleBilinear2dAA: against sums over all pixels of an
// image with the weights of their filters.
#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

struct Rule {
  bool corners;
  bool half;
};

const Rule kRules[] = {{false, false}, {true, false}, {false, true}};

OpCall Resize(const std::string& type, const std::string& port, const Tensor& x, int64_t height,
              int64_t width, Rule rule) {
  return {.type = type,
          .inputs = {{port, x},
                     {"size",
                      Make<int32_t>(DataType::kInt32, {2},
                                    {static_cast<int32_t>(height), static_cast<int32_t>(width)})}},
          .attrs = {{"align_corners", AttrValue::Bool(rule.corners)},
                    {"half_pixel_centers", AttrValue::Bool(rule.half)}}};
}

// Elements of an image, its channels last.
std::vector<double> ToLast(const Tensor& x) {
  const Shape& shape = x.shape();
  const std::vector<double> pixels = ToDoubles(x);
  std::vector<double> last;
  for (const Ints& at : Positions(Shape{shape[0], shape[2], shape[3], shape[1]})) {
    last.push_back(pixels[Index(shape, {at[0], at[3], at[1], at[2]})]);
  }
  return last;
}

// The real coordinate of output position `at`.
double Coordinate(int64_t at, int64_t in, int64_t out, Rule rule, bool linear) {
  const double ratio = static_cast<double>(in) / static_cast<double>(out);
  if (rule.corners) {
    return out == 1 ? 0 : static_cast<double>(at * (in - 1)) / static_cast<double>(out - 1);
  }
  if (rule.half) return (static_cast<double>(at) + 0.5) * ratio - (linear ? 0.5 : 0);
  return static_cast<double>(at) * ratio;
}

// A triangle of width 1 around each pixel, which is what bilinear means; the border goes on for
// ever.
double Weight(double coordinate, int64_t pixel, int64_t in) {
  const double clamped = std::min(std::max(coordinate, 0.0), static_cast<double>(in - 1));
  return std::max(0.0, 1 - std::fabs(clamped - static_cast<double>(pixel)));
}

TEST(ResizeBilinear, WeighsThePixelsAround) {
  const Tensor x = Pattern(DataType::kFloat, {1, 2, 3, 4});
  const std::pair<int64_t, int64_t> sizes[] = {{6, 8}, {2, 3}, {1, 1}, {5, 4}};
  for (const auto& [height, width] : sizes) {
    for (const Rule rule : kRules) {
      std::vector<double> expected;
      for (const Ints& at : Positions(Shape{1, 2, height, width})) {
        const double row = Coordinate(at[2], 3, height, rule, true);
        const double column = Coordinate(at[3], 4, width, rule, true);
        double sum = 0;
        for (int64_t r = 0; r < 3; ++r) {
          for (int64_t c = 0; c < 4; ++c) {
            sum += Weight(row, r, 3) * Weight(column, c, 4) *
                   ToDoubles(x)[Index(x.shape(), {0, at[1], r, c})];
          }
        }
        expected.push_back(sum);
      }
      const Tensor y = RunOne(Resize("ResizeBilinearV2", "x", x, height, width, rule));
      ASSERT_EQ(y.shape(), Shape({1, 2, height, width}));
      op_test::NoteNear(1, 1e-6);
      EXPECT_THAT(ToDoubles(y), testing::Pointwise(testing::DoubleNear(1e-6), expected));
    }
  }
}

int64_t NearestOf(int64_t at, int64_t in, int64_t out, Rule rule) {
  const double place = Coordinate(at, in, out, rule, false);
  const auto pixel = static_cast<int64_t>(rule.corners ? std::round(place) : std::floor(place));
  return std::min(pixel, in - 1);
}

TEST(ResizeNearest, CopiesOnePixelAndItsGradientGoesBack) {
  for (const DataType dtype : {DataType::kFloat, DataType::kUint8, DataType::kFloat16}) {
    const Tensor x = Pattern(dtype, {2, 1, 3, 4});
    const std::pair<int64_t, int64_t> sizes[] = {{6, 8}, {2, 3}, {1, 7}};
    for (const auto& [height, width] : sizes) {
      for (const Rule rule : kRules) {
        const Shape shape = {2, 1, height, width};
        std::vector<double> expected, back(24, 0);
        const Tensor grads = Pattern(dtype, shape, 3);
        for (const Ints& at : Positions(shape)) {
          const size_t source = Index(x.shape(), {at[0], 0, NearestOf(at[2], 3, height, rule),
                                                  NearestOf(at[3], 4, width, rule)});
          expected.push_back(ToDoubles(x)[source]);
          back[source] += ToDoubles(grads)[Index(shape, at)];
        }
        EXPECT_TRUE(
            SameBytes(RunOne(Resize("ResizeNearestNeighborV2", "x", x, height, width, rule)),
                      FromDoubles(dtype, shape, expected)));
        EXPECT_TRUE(
            SameBytes(RunOne(Resize("ResizeNearestNeighborV2Grad", "grads", grads, 3, 4, rule)),
                      FromDoubles(dtype, x.shape(), back)));
      }
    }
  }
}

// On three threads, which share the rows of all images out.
TEST(Resize, PixelsLieTogetherWhereChannelsAreLast) {
  const Tensor x = Pattern(DataType::kFloat, {2, 3, 5, 7});
  const Tensor last = FromDoubles(DataType::kFloat, {2, 5, 7, 3}, ToLast(x));
  for (const char* type : {"ResizeNearestNeighborV2", "ResizeBilinearV2"}) {
    for (const Rule rule : kRules) {
      OpCall call = Resize(type, "x", last, 8, 3, rule);
      call.attrs.emplace_back("input_layout_info", LastChannels());
      call.threads = 3;
      const Tensor y = RunOne(call);
      ASSERT_EQ(y.shape(), Shape({2, 8, 3, 3}));
      EXPECT_EQ(ToDoubles(y), ToLast(RunOne(Resize(type, "x", x, 8, 3, rule)))) << type;
    }
  }
}

// What has no weight is not read: an infinity stays where it is.
TEST(ResizeBilinear, WhatHasNoWeightMayBeAnyNumber) {
  const float most = std::numeric_limits<float>::infinity();
  const Tensor x = Make<float>(DataType::kFloat, {1, 1, 2, 2}, {1, most, 2, 3});
  const Tensor y = RunOne(Resize("ResizeBilinearV2", "x", x, 2, 2, {false, true}));
  EXPECT_EQ(ToDoubles(y), ToDoubles(x));
}

// Quotients of whole numbers: 49 * (2 / 98) in double is below 1.
TEST(ResizeNearest, PlacesHaveNoRoundingErrors) {
  const Tensor x = Make<float>(DataType::kFloat, {1, 1, 1, 2}, {0, 1});
  const std::vector<double> y =
      ToDoubles(RunOne(Resize("ResizeNearestNeighborV2", "x", x, 1, 98, {false, false})));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i < 49 ? 0 : 1) << i;
}

double CubicWeight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

struct Along {
  int64_t in, out;
  float scale;
  bool corners;
  double step() const {
    if (corners) return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    return scale > 0 ? 1.0 / scale : static_cast<double>(in) / static_cast<double>(out);
  }
};

// The weight of each pixel for a position of the output.
std::vector<double> Weights(const std::string& type, const Along& along, int64_t at) {
  std::vector<double> weights(static_cast<size_t>(along.in), 0);
  const double step = along.step(), place = static_cast<double>(at);
  if (type == "UpsampleBicubic2d") {  // pixels beyond the border are those of the border
    const double source = along.corners ? place * step : (place + 0.5) * step - 0.5;
    for (int64_t pixel = -40; pixel < along.in + 40; ++pixel) {
      weights[static_cast<size_t>(std::clamp<int64_t>(pixel, 0, along.in - 1))] +=
          CubicWeight(source - static_cast<double>(pixel), -0.75);
    }
    return weights;
  }
  const double wide = std::max(step, 1.0), centre = step * (place + 0.5);
  double total = 0;
  for (int64_t pixel = 0; pixel < along.in; ++pixel) {
    const double x = (static_cast<double>(pixel) + 0.5 - centre) / wide;
    const double weight =
        type == "UpsampleBicubic2dAA" ? CubicWeight(x, -0.5) : std::max(0.0, 1 - std::fabs(x));
    weights[static_cast<size_t>(pixel)] = weight;
    total += weight;
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

OpCall Resample(const std::string& type, const Tensor& x, const Along& rows, const Along& columns) {
  return {.type = type,
          .inputs = {{type == "UpsampleBicubic2dAA" ? "x" : "input", x}},
          .attrs = {{"output_size", AttrValue::Ints({rows.out, columns.out})},
                    {"align_corners", AttrValue::Bool(rows.corners)},
                    {"scales_h", AttrValue::Float(rows.scale)},
                    {"scales_w", AttrValue::Float(columns.scale)}}};
}

TEST(Resample, WeighsThePixelsByItsFilter) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    for (const std::string type :
         {"UpsampleBicubic2d", "UpsampleBicubic2dAA", "UpsampleBilinear2dAA"}) {
      for (const auto& [rows, columns] :
           std::vector<std::pair<Along, Along>>{{{5, 9, 0, false}, {4, 2, 0, false}},
                                                {{5, 3, 0, false}, {4, 4, 0, false}},
                                                {{5, 10, 2, false}, {4, 6, 1.5F, false}},
                                                {{1, 3, 0, false}, {7, 1, 0, false}},
                                                {{7, 3, 0.5F, false}, {9, 3, 0.4F, false}},
                                                {{70, 2, 0, false}, {3, 17, 0, false}}}) {
        const bool smooth = type == "UpsampleBicubic2d";
        for (const bool corners : {false, true}) {
          if (corners && !smooth) continue;  // centres are not those of corners
          Along down = rows, across = columns;
          down.corners = across.corners = corners;
          const Tensor x = Pattern(dtype, {2, 2, down.in, across.in});
          const std::vector<double> pixels = ToDoubles(x);
          const Shape shape = {2, 2, down.out, across.out};
          std::vector<double> expected;
          for (const Ints& at : Positions(shape)) {
            const std::vector<double> r = Weights(type, down, at[2]);
            const std::vector<double> c = Weights(type, across, at[3]);
            double sum = 0;
            for (const Ints& from : Positions(Shape{down.in, across.in})) {
              sum += r[static_cast<size_t>(from[0])] * c[static_cast<size_t>(from[1])] *
                     pixels[Index(x.shape(), {at[0], at[1], from[0], from[1]})];
            }
            expected.push_back(sum);
          }
          const Tensor y = RunOne(Resample(type, x, down, across));
          ASSERT_EQ(y.type(), (TensorType{dtype, shape}));
          const double error = dtype == DataType::kFloat ? 1e-5 : 64 * Ulp(dtype, 1) / 8;
          op_test::NoteNear(1, error);
          EXPECT_THAT(ToDoubles(y), testing::Pointwise(testing::DoubleNear(error), expected))
              << type << " " << Name(dtype) << " " << down.in << " " << down.out;
        }
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
