// UpsampleBicubic2d, UpsampleBicubic2dAA, UpsampleBilinear2dAA: against sums over all pixels of an
// image with the weights of their filters.
#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

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
                                                {{7, 3, 0.5F, false}, {9, 3, 0.4F, false}}}) {
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

TEST(Resample, Refuses) {
  const Tensor x = Pattern(DataType::kFloat, {1, 1, 2, 2});
  ExpectFails(Resample("UpsampleBicubic2d", x, {2, 0, 0, false}, {2, 2, 0, false}),
              Code::kInvalidArgument, {"output_size", "[0,2]"});
  ExpectFails(Resample("UpsampleBilinear2dAA", Pattern(DataType::kFloat, {1, 1, 0, 2}),
                       {0, 1, 0, false}, {2, 2, 0, false}),
              Code::kInvalidArgument, {"no pixels"});
  ExpectFails(Resample("UpsampleBicubic2dAA", Pattern(DataType::kFloat, {2, 2}), {2, 1, 0, false},
                       {2, 2, 0, false}),
              Code::kInvalidArgument, {"[2,2]"});
}

}  // namespace
}  // namespace npumesh
