// Group and batch normalisation, forwards and backwards.
#include "tests/unit/op_gradient.h"
#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

// Statistics of the positions for which `belongs` holds.
template <typename Belongs>
std::pair<double, double> MomentsOf(const Tensor& x, Belongs belongs) {
  const std::vector<double> values = ToDoubles(x);
  double count = 0, mean = 0, variance = 0;
  for (const Ints& at : Positions(x.shape())) count += belongs(at) ? 1 : 0;
  for (const Ints& at : Positions(x.shape())) {
    if (belongs(at)) mean += values[Index(x.shape(), at)] / count;
  }
  for (const Ints& at : Positions(x.shape())) {
    if (belongs(at)) variance += std::pow(values[Index(x.shape(), at)] - mean, 2) / count;
  }
  return {mean, variance};
}

// Group normalisation by the definition; `channel` is the dimension of the channels.
std::vector<double> GroupNormOf(const Tensor& x, size_t channel, int64_t groups,
                                const Tensor& gamma, const Tensor& beta, double epsilon) {
  const int64_t share = x.shape().dims()[channel] / groups;
  std::vector<double> y;
  for (const Ints& at : Positions(x.shape())) {
    const auto [mean, variance] = MomentsOf(x, [&](const Ints& other) {
      return other[0] == at[0] && other[channel] / share == at[channel] / share;
    });
    const auto c = static_cast<size_t>(at[channel]);
    y.push_back((ToDoubles(x)[Index(x.shape(), at)] - mean) / std::sqrt(variance + epsilon) *
                    ToDoubles(gamma)[c] +
                ToDoubles(beta)[c]);
  }
  return y;
}

std::pair<std::string, AttrValue> Format(const char* format) {
  return {"data_format", AttrValue::String(format)};
}

TEST(GroupNorm, NormalisesGroupsOfChannels) {
  const Tensor gamma = Waves(kF32, {4}, 2), beta = Waves(kF32, {4}, 3);
  const auto run = [&](const char* type, const Tensor& x, const char* format) {
    OpCall call = {.type = type,
                   .inputs = {{"x", x}, {"gamma", gamma}, {"beta", beta}},
                   .attrs = {{"num_groups", AttrValue::Int(2)}, {"eps", AttrValue::Float(0.5f)}}};
    if (format != nullptr) call.attrs.push_back(Format(format));
    return Outputs(call);
  };
  const Tensor x = Waves(kF32, {2, 4, 3});
  const std::vector<double> expected = GroupNormOf(x, 1, 2, gamma, beta, 0.5);
  const std::vector<Tensor> variance = run("GroupNorm", x, "NCHW");
  const std::vector<Tensor> rstd = run("GroupNormV2", x, "NCHW");
  ExpectNear(variance[0], expected, 1e-6);
  ExpectNear(rstd[0], expected, 1e-6);
  EXPECT_EQ(rstd[1].shape(), Shape({2, 2}));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(ToDoubles(rstd[2])[i], 1 / std::sqrt(ToDoubles(variance[2])[i] + 0.5), 1e-6);
  }
  std::vector<double> silu;
  for (const double v : expected) silu.push_back(v / (1 + std::exp(-v)));
  const std::vector<Tensor> with_silu = run("GroupNormSilu", x, nullptr);
  ExpectNear(with_silu[0], silu, 1e-6);
  EXPECT_TRUE(SameBytes(with_silu[2], rstd[2]));  // the third output is no variance
  const Tensor last = Waves(kF32, {2, 3, 1, 4});
  ExpectNear(run("GroupNormV2", last, "NHWC")[0], GroupNormOf(last, 3, 2, gamma, beta, 0.5), 1e-6);
}

TEST(GroupNormSwish, ScalesTheSigmoid) {
  const Tensor gamma = Waves(kF64, {6}, 2), beta = Waves(kF64, {6}, 3),
               dy = Waves(kF64, {2, 6, 3}, 4);
  for (const double scale : {1.0, 0.5, -2.0}) {
    for (const bool activates : {true, false}) {
      const Tensor x = Waves(kF64, {2, 6, 3});
      const OpCall call = {.type = "GroupNormSwish",
                           .inputs = {{"x", x}, {"gamma", gamma}, {"beta", beta}},
                           .attrs = {{"num_groups", AttrValue::Int(3)},
                                     {"eps", AttrValue::Float(0.25f)},
                                     {"activate_swish", AttrValue::Bool(activates)},
                                     {"swish_scale", AttrValue::Float(static_cast<float>(scale))}}};
      std::vector<double> expected = GroupNormOf(x, 1, 3, gamma, beta, 0.25);
      if (activates) {
        for (double& v : expected) v /= 1 + std::exp(-scale * v);
      }
      const std::vector<Tensor> out = Outputs(call);
      ExpectNear(out[0], expected, 1e-12);
      if (!activates) continue;
      const std::vector<Tensor> grad =
          Outputs({.type = "GroupNormSwishGrad",
                   .inputs = {{"dy", dy},
                              {"mean", out[1]},
                              {"rstd", out[2]},
                              {"x", x},
                              {"gamma", gamma},
                              {"beta", beta}},
                   .attrs = {{"num_groups", AttrValue::Int(3)},
                             {"swish_scale", AttrValue::Float(static_cast<float>(scale))}}});
      ExpectGradient(call, "x", dy, grad[0]);
      ExpectGradient(call, "gamma", dy, grad[1]);
      ExpectGradient(call, "beta", dy, grad[2]);
    }
  }
}

TEST(GroupNorm, SiluWithoutParameters) {
  const Tensor x = FromDoubles(kF32, {1, 2, 2}, {1, -1, 3, -3});
  const Tensor y =
      RunOne({.type = "GroupNormSilu",
              .inputs = {{"x", x}},
              .attrs = {{"num_groups", AttrValue::Int(2)}, {"eps", AttrValue::Float(0.0f)}}});
  const double up = 1 / (1 + std::exp(-1)), down = -1 / (1 + std::exp(1));
  ExpectNear(y, {up, down, up, down}, 1e-6);
}

// The attribute of a newer interface was taken for a hint, and the activation applied all the same.
TEST(GroupNorm, SiluCanBeSwitchedOff) {
  const Tensor x = FromDoubles(kF32, {1, 2, 2}, {1, -1, 3, -3});
  const Tensor y = RunOne({.type = "GroupNormSilu",
                           .inputs = {{"x", x}},
                           .attrs = {{"num_groups", AttrValue::Int(2)},
                                     {"eps", AttrValue::Float(0.0f)},
                                     {"activate_silu", AttrValue::Bool(false)}}});
  ExpectNear(y, {1, -1, 1, -1}, 1e-6);
}

TEST(GroupNorm, GradientIsTheSlope) {
  for (const char* format : {"NCHW", "NHWC"}) {
    const bool last = std::string(format) == "NHWC";
    const Shape shape = last ? Shape{2, 3, 1, 4} : Shape{2, 4, 3, 1};
    const Tensor x = Waves(kF64, shape), dy = Waves(kF64, shape, 5), gamma = Waves(kF64, {4}, 2),
                 beta = Waves(kF64, {4}, 3);
    const OpCall forward = {.type = "GroupNormV2",
                            .inputs = {{"x", x}, {"gamma", gamma}, {"beta", beta}},
                            .attrs = {{"num_groups", AttrValue::Int(2)}, Format(format)}};
    const std::vector<Tensor> y = Outputs(forward);
    OpCall backward = {
        .type = "GroupNormGrad",
        .inputs = {{"dy", dy}, {"mean", y[1]}, {"rstd", y[2]}, {"x", x}, {"gamma", gamma}},
        .attrs = {{"num_groups", AttrValue::Int(2)}, Format(format)}};
    const std::vector<Tensor> grad = Outputs(backward);
    ExpectGradient(forward, "x", dy, grad[0]);
    ExpectGradient(forward, "gamma", dy, grad[1]);
    ExpectGradient(forward, "beta", dy, grad[2]);
    backward.attrs.emplace_back("dgamma_is_require", AttrValue::Bool(false));
    const std::vector<Tensor> less = Outputs(backward);
    EXPECT_TRUE(SameBytes(less[0], grad[0]));
    EXPECT_EQ(ToDoubles(less[1]), std::vector<double>(4, 0));
  }
}

// ---- by channel ----

struct Channels {
  Tensor x = Waves(kF64, {3, 2, 2, 1});
  Tensor dy = Waves(kF64, {3, 2, 2, 1}, 7);
  Tensor weight = Waves(kF64, {2}, 2);
  Tensor bias = Waves(kF64, {2}, 3);
  Tensor mean = Waves(kF64, {2}, 4);
  Tensor variance = Scaled(Waves(kF64, {2}, 5), 0.5, 2);

  OpCall Forward(bool training) const {
    return {.type = "BatchNormV3",
            .inputs = {{"x", x},
                       {"weight", weight},
                       {"bias", bias},
                       {"running_mean", mean},
                       {"running_var", variance}},
            .attrs = {{"is_training", AttrValue::Bool(training)},
                      {"momentum", AttrValue::Float(0.25f)}}};
  }
};

TEST(BatchNorm, TrainingUpdatesTheRunningStatistics) {
  const Channels c;
  const std::vector<Tensor> out = Outputs(c.Forward(true));
  ASSERT_EQ(out.size(), 5u);
  for (int64_t channel = 0; channel < 2; ++channel) {
    const auto [mean, variance] = MomentsOf(c.x, [&](const Ints& at) { return at[1] == channel; });
    const auto i = static_cast<size_t>(channel);
    EXPECT_NEAR(ToDoubles(out[1])[i], 0.75 * ToDoubles(c.mean)[i] + 0.25 * mean, 1e-12);
    EXPECT_NEAR(ToDoubles(out[2])[i], 0.75 * ToDoubles(c.variance)[i] + 0.25 * variance * 6 / 5,
                1e-12);
    EXPECT_NEAR(ToDoubles(out[3])[i], mean, 1e-6);
    EXPECT_NEAR(ToDoubles(out[4])[i], 1 / std::sqrt(variance + 1e-5), 1e-5);
    for (const Ints& at : Positions(c.x.shape())) {
      if (at[1] != channel) continue;
      const size_t e = Index(c.x.shape(), at);
      EXPECT_NEAR(ToDoubles(out[0])[e],
                  (ToDoubles(c.x)[e] - mean) / std::sqrt(variance + static_cast<double>(1e-5f)) *
                          ToDoubles(c.weight)[i] +
                      ToDoubles(c.bias)[i],
                  1e-9);
    }
  }
}

TEST(BatchNorm, InferenceLeavesTheStatistics) {
  const Channels c;
  const std::vector<Tensor> out = Outputs(c.Forward(false));
  EXPECT_TRUE(SameBytes(out[1], c.mean));
  EXPECT_TRUE(SameBytes(out[2], c.variance));
  std::vector<double> expected;
  for (const Ints& at : Positions(c.x.shape())) {
    const auto i = static_cast<size_t>(at[1]);
    expected.push_back((ToDoubles(c.x)[Index(c.x.shape(), at)] - ToDoubles(c.mean)[i]) /
                           std::sqrt(ToDoubles(c.variance)[i] + static_cast<double>(1e-5f)) *
                           ToDoubles(c.weight)[i] +
                       ToDoubles(c.bias)[i]);
  }
  ExpectNear(out[0], expected, 1e-9);
}

TEST(BatchNorm, GradientIsTheSlope) {
  for (const bool training : {true, false}) {
    const Channels c;
    const std::vector<Tensor> y = Outputs(c.Forward(training));
    const std::vector<Tensor> grad =
        Outputs({.type = "BatchNormGradV3",
                 .inputs = {{"dy", c.dy},
                            {"x", c.x},
                            {"weight", c.weight},
                            {"running_mean", c.mean},
                            {"running_var", c.variance},
                            {"save_mean", y[3]},
                            {"save_rstd", y[4]}},
                 .attrs = {{"is_training", AttrValue::Bool(training)}}});
    ASSERT_EQ(grad.size(), 3u);
    // The saved statistics are float32.
    ExpectGradient(c.Forward(training), "x", c.dy, grad[0], 1e-5);
    ExpectGradient(c.Forward(training), "weight", c.dy, grad[1], 1e-5);
    ExpectGradient(c.Forward(training), "bias", c.dy, grad[2], 1e-5);
  }
}

TEST(BatchNorm, ByTensorFlowsRules) {
  const Tensor x = FromDoubles(kF32, {4, 1, 1, 1}, {1, 2, 3, 6}), one = FromDoubles(kF32, {1}, {2}),
               zero = FromDoubles(kF32, {1}, {0.5});
  const std::vector<Tensor> out = Outputs({.type = "BatchNorm",
                                           .inputs = {{"x", x}, {"scale", one}, {"offset", zero}},
                                           .attrs = {{"epsilon", AttrValue::Float(0.5f)}}});
  ASSERT_EQ(out.size(), 6u);
  // Mean 3, biased variance 3.5, unbiased 14 / 3; sqrt(3.5 + 0.5) = 2.
  EXPECT_EQ(ToDoubles(out[0]), (std::vector<double>{-1.5, -0.5, 0.5, 3.5}));
  EXPECT_EQ(ToDoubles(out[1]), (std::vector<double>{3}));
  ExpectNear(out[2], {14.0 / 3}, 1e-6);
  EXPECT_EQ(ToDoubles(out[4]), (std::vector<double>{3.5}));
  const std::vector<Tensor> fixed = Outputs(
      {.type = "BatchNorm",
       .inputs = {{"x", x},
                  {"scale", one},
                  {"offset", zero},
                  {"mean", FromDoubles(kF32, {1}, {2})},
                  {"variance", FromDoubles(kF32, {1}, {0.5})}},
       .attrs = {{"epsilon", AttrValue::Float(0.5f)}, {"is_training", AttrValue::Bool(false)}}});
  EXPECT_EQ(ToDoubles(fixed[0]), (std::vector<double>{-1.5, 0.5, 2.5, 8.5}));
  EXPECT_EQ(ToDoubles(fixed[2]), (std::vector<double>{0.5}));
}

// BNTrainingReduce and BNTrainingUpdate together are BatchNormV3.
TEST(BatchNorm, InTwoSteps) {
  const Channels c;
  const std::vector<Tensor> sums = Outputs({.type = "BNTrainingReduce", .inputs = {{"x", c.x}}});
  EXPECT_EQ(sums[0].type(), (TensorType{kF32, {2}}));
  const std::vector<Tensor> pieces = Outputs(
      {.type = "BNTrainingUpdate",
       .inputs = {{"x", c.x},
                  {"sum", sums[0]},
                  {"square_sum", sums[1]},
                  {"scale", c.weight},
                  {"offset", c.bias},
                  {"mean", c.mean},
                  {"variance", c.variance}},
       .attrs = {{"factor", AttrValue::Float(0.25f)}, {"epsilon", AttrValue::Float(1e-5f)}}});
  const std::vector<Tensor> whole = Outputs(c.Forward(true));
  for (size_t i = 0; i < 4; ++i) ExpectNear(pieces[i], ToDoubles(whole[i]), 2e-6);

  const std::vector<OpInput> inputs = {
      {"grads", c.dy}, {"x", c.x}, {"batch_mean", pieces[3]}, {"batch_variance", pieces[4]}};
  const std::pair<std::string, AttrValue> epsilon = {"epsilon", AttrValue::Float(1e-5f)};
  const std::vector<Tensor> parts =
      Outputs({.type = "BNTrainingUpdateGrad", .inputs = inputs, .attrs = {epsilon}});
  const std::vector<Tensor> same =
      Outputs({.type = "BN3DTrainingUpdateGrad", .inputs = inputs, .attrs = {epsilon}});
  EXPECT_TRUE(SameBytes(parts[0], same[0]));
  ExpectGradient(c.Forward(true), "weight", c.dy, parts[0], 1e-5);
  ExpectGradient(c.Forward(true), "bias", c.dy, parts[1], 1e-5);
  const Tensor dx = RunOne({.type = "BNTrainingReduceGrad",
                            .inputs = {{"grads", c.dy},
                                       {"x", c.x},
                                       {"diff_scale", parts[0]},
                                       {"diff_offset", parts[1]},
                                       {"scale", c.weight},
                                       {"batch_mean", pieces[3]},
                                       {"batch_variance", pieces[4]}},
                            .attrs = {epsilon}});
  ExpectGradient(c.Forward(true), "x", c.dy, dx, 1e-5);
}

}  // namespace
}  // namespace npumesh
