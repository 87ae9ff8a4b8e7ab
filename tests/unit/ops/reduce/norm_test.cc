// LayerNormV4, RmsNorm and AddRmsNorm against formulas in double.
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

const std::vector<DataType>& Floats() {
  static const std::vector<DataType> floats = {DataType::kFloat, DataType::kFloat16,
                                               DataType::kBfloat16};
  return floats;
}

// Deterministic values around `center`, not exact in any short type.
Tensor Waves(DataType dtype, const Shape& shape, double center, double width) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = center + width * std::sin(1.7 * static_cast<double>(i) + 0.3);
  }
  return FromDoubles(dtype, shape, values);
}

// |got - expected| <= `ulps` of the dtype, or of float32 for what passes through it.
void ExpectClose(const Tensor& got, const std::vector<double>& expected, double ulps,
                 double scale) {
  const std::vector<double> values = ToDoubles(got);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double bound = ulps * Ulp(got.dtype(), expected[i]) + scale * 1e-6;
    EXPECT_NEAR(values[i], expected[i], bound) << "element " << i;
  }
}

struct Statistics {
  double mean = 0;
  double rstd = 0;
};

Statistics OfRow(const double* x, size_t n, double epsilon, bool centred) {
  Statistics s;
  for (size_t i = 0; centred && i < n; ++i) s.mean += x[i] / static_cast<double>(n);
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += (x[i] - s.mean) * (x[i] - s.mean);
  s.rstd = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
  return s;
}

// ---- LayerNormV4 ----

struct LayerNormCase {
  Shape x;
  Shape normalized;
  bool gamma = true;
  bool beta = true;
};

TEST(LayerNorm, FollowsTheFormula) {
  const std::vector<LayerNormCase> cases = {
      {{3, 8}, {8}}, {{2, 3, 4}, {3, 4}}, {{2, 5}, {5}, false, false},  {{2, 5}, {5}, true, false},
      {{4, 1}, {1}}, {{2, 3000}, {3000}}, {{1, 17}, {17}, false, true}, {{4}, {4}},
      {{2, 3}, {}},
  };
  for (const LayerNormCase& c : cases) {
    for (const DataType dtype : Floats()) {
      for (const DataType affine : {dtype, DataType::kFloat}) {
        SCOPED_TRACE(c.x.ToString() + " " + std::string(Name(dtype)));
        const Tensor x = Waves(dtype, c.x, 3, 2);
        const Tensor gamma = Waves(affine, c.normalized, 1, 0.5);
        const Tensor beta = Waves(affine, c.normalized, 0, 1);
        OpCall call{.type = "LayerNormV4",
                    .inputs = {{"x", x}, {"normalized_shape", MakeInts(c.normalized.dims())}},
                    .attrs = {{"epsilon", AttrValue::Float(1e-3f)}}};
        if (c.gamma) call.inputs.push_back({"gamma", gamma});
        if (c.beta) call.inputs.push_back({"beta", beta});
        const Result<std::vector<Tensor>> out = RunOp(call);
        ASSERT_TRUE(out.ok()) << out.status().ToString();

        const auto n = static_cast<size_t>(c.normalized.elements());
        const std::vector<double> values = ToDoubles(x);
        const std::vector<double> scale = ToDoubles(gamma);
        const std::vector<double> shift = ToDoubles(beta);
        std::vector<double> y, mean, rstd;
        for (size_t row = 0; row < values.size(); row += n) {
          const Statistics s = OfRow(&values[row], n, static_cast<double>(1e-3f), true);
          mean.push_back(s.mean);
          rstd.push_back(s.rstd);
          for (size_t i = 0; i < n; ++i) {
            const double scaled = (values[row + i] - s.mean) * s.rstd * (c.gamma ? scale[i] : 1);
            y.push_back(scaled + (c.beta ? shift[i] : 0));
          }
        }
        EXPECT_EQ((*out)[0].type(), x.type());
        ExpectClose((*out)[0], y, 0.51, 3);
        Shape statistics = c.x;
        for (int i = c.x.rank() - c.normalized.rank(); i < c.x.rank(); ++i) statistics[i] = 1;
        EXPECT_EQ((*out)[1].type(), (TensorType{DataType::kFloat, statistics}));
        EXPECT_EQ((*out)[2].type(), (TensorType{DataType::kFloat, statistics}));
        ExpectClose((*out)[1], mean, 1, 0.1);
        ExpectClose((*out)[2], rstd, 2, 0.1);
      }
    }
  }
}

// With E[x^2] - E[x]^2 or a plain float sum the variance of this row is lost.
TEST(LayerNorm, KeepsAccuracyFarFromZero) {
  const int64_t n = 100000;
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = 10000 + (i % 2 == 0 ? 1 : -1);
  const Result<std::vector<Tensor>> out =
      RunOp({.type = "LayerNormV4",
             .inputs = {{"x", FromDoubles(DataType::kFloat, {1, n}, values)},
                        {"normalized_shape", MakeInts({n})}}});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ((*out)[1].as<float>()[0], 10000.0f);
  EXPECT_NEAR((*out)[2].as<float>()[0], 1.0f, 1e-5);
  EXPECT_NEAR((*out)[0].as<float>()[1], -1.0f, 1e-5);
}

// Another test of this name is in layer_norm_test.cc.
namespace layer_norm_v4 {}  // namespace layer_norm_v4

// ---- RmsNorm ----

TEST(RmsNorm, FollowsTheFormula) {
  for (const auto& [shape, gamma_shape] : std::vector<std::pair<Shape, Shape>>{
           {{3, 8}, {8}}, {{2, 3, 4}, {3, 4}}, {{5}, {5}}, {{2, 40}, {40}}, {{0, 4}, {4}}}) {
    for (const DataType dtype : Floats()) {
      for (const DataType affine : {dtype, DataType::kFloat}) {
        const Tensor x = Waves(dtype, shape, 0.5, 2);
        const Tensor gamma = Waves(affine, gamma_shape, 1, 0.5);
        const Result<std::vector<Tensor>> out =
            RunOp({.type = "RmsNorm", .inputs = {{"x", x}, {"gamma", gamma}}});
        ASSERT_TRUE(out.ok()) << out.status().ToString();
        const auto n = static_cast<size_t>(gamma_shape.elements());
        const std::vector<double> values = ToDoubles(x);
        std::vector<double> y, rstd;
        for (size_t row = 0; row < values.size(); row += n) {
          rstd.push_back(OfRow(&values[row], n, static_cast<double>(1e-6f), false).rstd);
          for (size_t i = 0; i < n; ++i) {
            y.push_back(values[row + i] * rstd.back() * ToDoubles(gamma)[i]);
          }
        }
        EXPECT_EQ((*out)[0].type(), x.type());
        EXPECT_EQ((*out)[1].dtype(), DataType::kFloat);
        ExpectClose((*out)[0], y, 0.51, 1);
        ExpectClose((*out)[1], rstd, 2, 0.1);
      }
    }
  }
}

// ---- AddRmsNorm ----

// The rounding of A2/A3: the sum, x * rstd and the product with gamma are rounded one by one.
TEST(AddRmsNorm, RoundsWhereTheDeviceDoes) {
  for (const DataType dtype : Floats()) {
    const Shape shape{3, 24};
    const Tensor x1 = Waves(dtype, shape, 0.5, 2);
    const Tensor x2 = Waves(dtype, shape, -0.25, 1.5);
    const Tensor gamma = Waves(dtype, {24}, 1, 0.5);
    const Result<std::vector<Tensor>> out =
        RunOp({.type = "AddRmsNorm", .inputs = {{"x1", x1}, {"x2", x2}, {"gamma", gamma}}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    std::vector<double> sum = ToDoubles(x1);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += ToDoubles(x2)[i];
    EXPECT_TRUE(SameBytes((*out)[2], FromDoubles(dtype, shape, sum)));
    const std::vector<double> rounded = ToDoubles((*out)[2]);
    std::vector<double> y, rstd;
    for (size_t row = 0; row < rounded.size(); row += 24) {
      rstd.push_back(OfRow(&rounded[row], 24, static_cast<double>(1e-6f), false).rstd);
      for (size_t i = 0; i < 24; ++i) {
        y.push_back(Rounded(dtype, rounded[row + i] * rstd.back()) * ToDoubles(gamma)[i]);
      }
    }
    ExpectClose((*out)[1], rstd, 2, 0.1);
    ExpectClose((*out)[0], y, 1.01, 1);
  }
}

}  // namespace
}  // namespace npumesh
