// LayerNorm, LayerNormV3, AddLayerNorm, DeepNorm, AddRmsNormCast and the gradients.
#include "tests/unit/op_gradient.h"
#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

using Attrs = std::vector<std::pair<std::string, AttrValue>>;

// Rows of x normalised by the obvious formula, gamma and beta by column.
struct Rows {
  std::vector<double> y, mean, variance;
};

Rows LayerNormRows(const std::vector<double>& x, size_t n, const std::vector<double>& gamma,
                   const std::vector<double>& beta, double epsilon) {
  Rows rows;
  for (size_t r = 0; r < x.size() / n; ++r) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < n; ++i) mean += x[r * n + i] / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) {
      variance += std::pow(x[r * n + i] - mean, 2) / static_cast<double>(n);
    }
    for (size_t i = 0; i < n; ++i) {
      const double hat = (x[r * n + i] - mean) / std::sqrt(variance + epsilon);
      rows.y.push_back(hat * gamma[i % gamma.size()] + beta[i % beta.size()]);
    }
    rows.mean.push_back(mean);
    rows.variance.push_back(variance);
  }
  return rows;
}

TEST(LayerNorm, ThirdOutputIsVarianceOrRstd) {
  const Tensor x = Waves(kF32, {2, 3, 4}), gamma = Waves(kF32, {4}, 2), beta = Waves(kF32, {4}, 3);
  const Attrs attrs = {{"begin_norm_axis", AttrValue::Int(2)},
                       {"begin_params_axis", AttrValue::Int(-1)},
                       {"epsilon", AttrValue::Float(0.25f)}};
  const Rows rows = LayerNormRows(ToDoubles(x), 4, ToDoubles(gamma), ToDoubles(beta), 0.25);
  std::vector<double> rstd;
  for (const double variance : rows.variance) rstd.push_back(1 / std::sqrt(variance + 0.25));
  for (const bool third : {false, true}) {
    const std::vector<Tensor> out = Outputs({.type = third ? "LayerNormV3" : "LayerNorm",
                                             .inputs = {{"x", x}, {"gamma", gamma}, {"beta", beta}},
                                             .attrs = attrs});
    ASSERT_EQ(out.size(), 3u);
    EXPECT_EQ(out[1].shape(), Shape({2, 3, 1}));
    ExpectNear(out[0], rows.y, 1e-6);
    ExpectNear(out[1], rows.mean, 1e-6);
    ExpectNear(out[2], third ? rstd : rows.variance, 1e-6);
  }
}

// gamma spans more dimensions than the statistics, and fewer.
TEST(LayerNorm, ParametersMaySpanOtherDimensions) {
  const Tensor x = Waves(kF32, {2, 3, 4});
  for (const int64_t axis : {0, 1, 2}) {
    const int64_t params = axis == 0 ? 24 : axis == 1 ? 12 : 4;
    const Tensor gamma = Waves(kF32, {params}, 2), beta = Waves(kF32, {params}, 3);
    const Tensor y = RunOne({.type = "LayerNormV3",
                             .inputs = {{"x", x}, {"gamma", gamma}, {"beta", beta}},
                             .attrs = {{"begin_norm_axis", AttrValue::Int(1)},
                                       {"begin_params_axis", AttrValue::Int(axis)}}});
    std::vector<double> expected = LayerNormRows(ToDoubles(x), 12, {1}, {0}, 1e-5).y;
    for (size_t i = 0; i < expected.size(); ++i) {
      const size_t p = i % static_cast<size_t>(params);
      expected[i] = expected[i] * ToDoubles(gamma)[p] + ToDoubles(beta)[p];
    }
    ExpectNear(y, expected, 1e-5);
  }
}

TEST(LayerNormGrad, IsTheSlopeOfLayerNorm) {
  const Tensor x = Waves(kF64, {2, 3, 4}), gamma = Waves(kF64, {3, 4}, 2),
               beta = Waves(kF64, {3, 4}, 3), dy = Waves(kF64, {2, 3, 4}, 4);
  const OpCall forward = {
      .type = "LayerNormV3",
      .inputs = {{"x", x}, {"gamma", gamma}, {"beta", beta}},
      .attrs = {{"begin_norm_axis", AttrValue::Int(1)}, {"begin_params_axis", AttrValue::Int(1)}}};
  const std::vector<Tensor> y = Outputs(forward);
  const std::vector<Tensor> grad =
      Outputs({.type = "LayerNormGradV3",
               .inputs = {{"dy", dy}, {"x", x}, {"rstd", y[2]}, {"mean", y[1]}, {"gamma", gamma}}});
  ASSERT_EQ(grad.size(), 3u);
  EXPECT_EQ(grad[1].type(), (TensorType{kF32, {3, 4}}));
  ExpectGradient(forward, "x", dy, grad[0]);
  ExpectGradient(forward, "gamma", dy, grad[1]);
  ExpectGradient(forward, "beta", dy, grad[2]);
}

// RmsNorm itself knows no float64, so the slope is that of its formula.
TEST(RmsNormGrad, IsTheSlopeOfRmsNorm) {
  const Tensor x = Waves(kF64, {3, 5}), gamma = Waves(kF64, {5}, 2), dy = Waves(kF64, {3, 5}, 4);
  const auto loss = [&](const std::vector<double>& at, const std::vector<double>& scale) {
    double sum = 0;
    for (size_t r = 0; r < 3; ++r) {
      double squares = 0;
      for (size_t i = 0; i < 5; ++i) squares += at[r * 5 + i] * at[r * 5 + i] / 5;
      for (size_t i = 0; i < 5; ++i) {
        sum += ToDoubles(dy)[r * 5 + i] * at[r * 5 + i] * scale[i] / std::sqrt(squares + 1e-6);
      }
    }
    return sum;
  };
  const auto slopes = [](std::vector<double> at, const auto& f) {
    std::vector<double> result;
    for (double& value : at) {
      const double before = value;
      value = before + 1e-5;
      const double above = f(at);
      value = before - 1e-5;
      result.push_back((above - f(at)) / 2e-5);
      value = before;
    }
    return result;
  };
  std::vector<double> rstd;
  for (size_t r = 0; r < 3; ++r) {
    double squares = 0;
    for (size_t i = 0; i < 5; ++i) squares += std::pow(ToDoubles(x)[r * 5 + i], 2) / 5;
    rstd.push_back(1 / std::sqrt(squares + 1e-6));
  }
  const std::vector<Tensor> grad = Outputs(
      {.type = "RmsNormGrad",
       .inputs = {
           {"dy", dy}, {"x", x}, {"rstd", FromDoubles(kF64, {3, 1}, rstd)}, {"gamma", gamma}}});
  const std::vector<double> scale = ToDoubles(gamma), at = ToDoubles(x);
  ExpectNear(grad[0], slopes(at, [&](const auto& v) { return loss(v, scale); }), 1e-6);
  ExpectNear(grad[1], slopes(scale, [&](const auto& v) { return loss(at, v); }), 1e-6);
}

// Halves in, halves out: the result is that of float64, rounded once.
TEST(RmsNormGrad, RoundsOnce) {
  for (const DataType dtype : {kF16, DataType::kBfloat16}) {
    const Tensor x = Waves(dtype, {4, 8}), gamma = Waves(dtype, {8}, 2),
                 dy = Waves(dtype, {4, 8}, 4), rstd = Scaled(Waves(kF32, {4, 1}, 5), 0.5, 1);
    const auto wide = [](const Tensor& t) { return FromDoubles(kF64, t.shape(), ToDoubles(t)); };
    const auto run = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
      return Outputs(
          {.type = "RmsNormGrad", .inputs = {{"dy", a}, {"x", b}, {"rstd", rstd}, {"gamma", c}}});
    };
    const std::vector<Tensor> narrow = run(dy, x, gamma),
                              exact = run(wide(dy), wide(x), wide(gamma));
    EXPECT_TRUE(SameBytes(narrow[0], FromDoubles(dtype, x.shape(), ToDoubles(exact[0]))));
    EXPECT_TRUE(SameBytes(narrow[1], exact[1]));
  }
}

TEST(AddLayerNorm, AddsAndNormalises) {
  const Tensor x1 = Waves(kF32, {3, 4}), x2 = Waves(kF32, {3, 4}, 2), gamma = Waves(kF32, {4}, 3),
               beta = Waves(kF32, {4}, 4);
  for (const int bias_rows : {0, 1, 3}) {
    const Tensor bias = Waves(kF32, bias_rows == 3 ? Shape{3, 4} : Shape{4}, 5);
    OpCall call = {.type = "AddLayerNorm",
                   .inputs = {{"x1", x1}, {"x2", x2}, {"gamma", gamma}, {"beta", beta}}};
    if (bias_rows > 0) call.inputs.push_back({"bias", bias});
    std::vector<double> sum;
    for (size_t i = 0; i < 12; ++i) {
      const double added = bias_rows == 0 ? 0 : ToDoubles(bias)[bias_rows == 3 ? i : i % 4];
      sum.push_back(ToDoubles(x1)[i] + ToDoubles(x2)[i] + added);
    }
    const Rows rows = LayerNormRows(sum, 4, ToDoubles(gamma), ToDoubles(beta), 1e-5);
    const std::vector<Tensor> out = Outputs(call);
    ExpectNear(out[0], rows.y, 1e-5);
    ExpectNear(out[1], rows.mean, 1e-6);
    EXPECT_EQ(out[2].type(), (TensorType{kF32, {3, 1}}));
    ExpectNear(out[3], sum, 1e-6);
  }
}

TEST(DeepNorm, WeighsX) {
  const Tensor x = Waves(kF32, {2, 6}), gx = Waves(kF32, {2, 6}, 2), beta = Waves(kF32, {6}, 3),
               gamma = Waves(kF32, {6}, 4);
  std::vector<double> sum;
  for (size_t i = 0; i < 12; ++i) sum.push_back(0.5 * ToDoubles(x)[i] + ToDoubles(gx)[i]);
  const Rows rows = LayerNormRows(sum, 6, ToDoubles(gamma), ToDoubles(beta), 1e-6);
  const std::vector<Tensor> out =
      Outputs({.type = "DeepNorm",
               .inputs = {{"x", x}, {"gx", gx}, {"beta", beta}, {"gamma", gamma}},
               .attrs = {{"alpha", AttrValue::Float(0.5f)}}});
  ExpectNear(out[0], rows.mean, 1e-6);
  ExpectNear(out[2], rows.y, 1e-5);
}

// The sum of two types is float32; gamma says over how many dimensions the norm goes.
TEST(AddLayerNorm, TakesTypesAndDimensionsAsTheyCome) {
  const Shape shape = {2, 3, 4};
  for (const DataType a : {kF32, kF16, kBf16}) {
    for (const DataType b : {kF32, kF16, kBf16}) {
      for (const bool two : {false, true}) {
        const Shape span = two ? Shape{3, 4} : Shape{4};
        const Tensor x1 = Waves(a, shape), x2 = Waves(b, shape, 2), gamma = Waves(b, span, 3),
                     beta = Waves(a, span, 4);
        std::vector<double> sum = ToDoubles(x1);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += ToDoubles(x2)[i];
        const Rows rows = LayerNormRows(sum, static_cast<size_t>(span.elements()), ToDoubles(gamma),
                                        ToDoubles(beta), 1e-5);
        const std::vector<Tensor> out =
            Outputs({.type = "AddLayerNorm",
                     .inputs = {{"x1", x1}, {"x2", x2}, {"gamma", gamma}, {"beta", beta}}});
        const DataType wide = a == b ? a : kF32;
        EXPECT_EQ(out[0].type(), (TensorType{wide, shape}));
        EXPECT_EQ(out[3].type(), (TensorType{wide, shape}));
        EXPECT_EQ(out[1].type(), (TensorType{kF32, two ? Shape{2, 1, 1} : Shape{2, 3, 1}}));
        ExpectNear(out[1], rows.mean, 1e-6);
        ExpectNear(out[0], rows.y, wide == kF32 ? 1e-5 : wide == kF16 ? 0x1p-10 : 0x1p-7);
      }
    }
  }
}

TEST(DeepNorm, NormalisesAsManyDimensionsAsGammaHas) {
  const Tensor x = Waves(kF32, {3, 2, 6}), gx = Waves(kF32, {3, 2, 6}, 2),
               beta = Waves(kF32, {2, 6}, 3), gamma = Waves(kF32, {2, 6}, 4);
  std::vector<double> sum;
  for (size_t i = 0; i < 36; ++i) {
    sum.push_back(static_cast<double>(0.3f) * ToDoubles(x)[i] + ToDoubles(gx)[i]);
  }
  const Rows rows = LayerNormRows(sum, 12, ToDoubles(gamma), ToDoubles(beta), 1e-6);
  const std::vector<Tensor> out = Outputs(
      {.type = "DeepNorm", .inputs = {{"x", x}, {"gx", gx}, {"beta", beta}, {"gamma", gamma}}});
  EXPECT_EQ(out[0].shape(), Shape({3, 1, 1}));
  ExpectNear(out[0], rows.mean, 1e-6);
  ExpectNear(out[2], rows.y, 1e-5);
}

TEST(AddLayerNormGrad, IsTheSlopeOfAddLayerNorm) {
  const Shape shape = {2, 3, 4};
  const Tensor x1 = Waves(kF64, shape), x2 = Waves(kF64, shape, 2), dy = Waves(kF64, shape, 5),
               dsum = Waves(kF64, shape, 6);
  for (const Shape& span : {Shape{4}, Shape{3, 4}}) {
    const Tensor gamma = Waves(kF64, span, 3), beta = Waves(kF64, span, 4);
    const OpCall forward = {.type = "AddLayerNorm",
                            .inputs = {{"x1", x1}, {"x2", x2}, {"gamma", gamma}, {"beta", beta}}};
    const std::vector<Tensor> y = Outputs(forward);
    OpCall backward = {
        .type = "AddLayerNormGrad",
        .inputs = {
            {"dy", dy}, {"x1", x1}, {"x2", x2}, {"rstd", y[2]}, {"mean", y[1]}, {"gamma", gamma}}};
    const std::vector<Tensor> grad = Outputs(backward);
    // mean and rstd are float32.
    ExpectGradient(forward, "x1", dy, grad[0], 1e-5);
    ExpectGradient(forward, "x2", dy, grad[0], 1e-5);
    ExpectGradient(forward, "gamma", dy, grad[1], 1e-5);
    ExpectGradient(forward, "beta", dy, grad[2], 1e-5);
    backward.inputs.push_back({"dsum", dsum});
    std::vector<double> more = ToDoubles(grad[0]);
    for (size_t i = 0; i < more.size(); ++i) more[i] += ToDoubles(dsum)[i];
    ExpectNear(Outputs(backward)[0], more, 1e-12);
  }
}

TEST(DeepNormGrad, IsTheSlopeOfDeepNorm) {
  const Shape shape = {2, 3, 4};
  const Tensor x = Waves(kF64, shape), gx = Waves(kF64, shape, 2), dy = Waves(kF64, shape, 5);
  for (const Shape& span : {Shape{4}, Shape{3, 4}}) {
    const Tensor beta = Waves(kF64, span, 3), gamma = Waves(kF64, span, 4);
    const Attrs attrs = {{"alpha", AttrValue::Float(0.5f)}};
    const OpCall forward = {.type = "DeepNorm",
                            .inputs = {{"x", x}, {"gx", gx}, {"beta", beta}, {"gamma", gamma}},
                            .attrs = attrs};
    const std::vector<Tensor> y = Outputs(forward);
    const std::vector<Tensor> grad = Outputs(
        {.type = "DeepNormGrad",
         .inputs =
             {{"dy", dy}, {"x", x}, {"gx", gx}, {"gamma", gamma}, {"mean", y[0]}, {"rstd", y[1]}},
         .attrs = attrs});
    const char* ports[] = {"x", "gx", "beta", "gamma"};
    for (size_t i = 0; i < 4; ++i) ExpectGradient(forward, ports[i], dy, grad[i], 1e-5, 2);
  }
}

// The outputs are those of AddRmsNorm, and y once more in float32.
TEST(AddRmsNormCast, AgreesWithAddRmsNorm) {
  for (const DataType dtype : {kF16, DataType::kBfloat16}) {
    const Tensor x1 = Waves(dtype, {3, 8}), x2 = Waves(dtype, {3, 8}, 2),
                 gamma = Waves(dtype, {8}, 3);
    const std::vector<OpInput> inputs = {{"x1", x1}, {"x2", x2}, {"gamma", gamma}};
    const std::vector<Tensor> plain = Outputs({.type = "AddRmsNorm", .inputs = inputs});
    const std::vector<Tensor> cast = Outputs({.type = "AddRmsNormCast", .inputs = inputs});
    EXPECT_EQ(cast[0].dtype(), kF32);
    EXPECT_EQ(ToDoubles(cast[0]), ToDoubles(cast[1]));
    EXPECT_TRUE(SameBytes(cast[1], plain[0]));
    ExpectNear(cast[2], ToDoubles(plain[1]), 1e-6);
    EXPECT_TRUE(SameBytes(cast[3], plain[2]));
  }
}

}  // namespace
}  // namespace npumesh
