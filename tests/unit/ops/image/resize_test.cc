// ResizeNearestNeighborV2, ResizeBilinearV2, ResizeNearestNeighborV2Grad.
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

TEST(Resize, Refuses) {
  const Tensor x = Pattern(DataType::kFloat, {1, 1, 2, 2});
  ExpectFails(Resize("ResizeBilinearV2", "x", x, 0, 2, {false, false}), Code::kInvalidArgument,
              {"[0,2]"});
  ExpectFails(
      Resize("ResizeBilinearV2", "x", Pattern(DataType::kFloat, {2, 2}), 1, 1, {false, false}),
      Code::kInvalidArgument, {"four dimensions"});
}

}  // namespace
}  // namespace npumesh
