// Losses and their gradients.
#include "tests/unit/ops/elementwise/pointwise_cases.h"

namespace npumesh {
namespace {

using Point = std::function<double(double, double)>;

struct LossCase {
  std::string type;
  std::string first;
  std::string second;
  Point point;
  Attrs attrs = {};
};

const std::vector<double> kPredict = {0.25, 0.5, 0.875, 0.125, 0.75, 0.0625};
const std::vector<double> kLabel = {1, 0, 0.5, 0.25, 1, 0.75};

double Near(double a, double b) {
  return std::fabs(a - b) <= 1e-6 * (1 + std::fabs(b));
}

const LossCase kLossCases[] = {
    {"MseLoss", "predict", "label", [](double p, double t) { return (p - t) * (p - t); }},
    {"LpLoss", "predict", "label", [](double p, double t) { return std::fabs(p - t); }},
    {"SmoothL1LossV2",
     "predict",
     "label",
     [](double p, double t) {
       const double d = std::fabs(p - t);
       return d < 0.5 ? d * d : d - 0.25;
     },
     {{"sigma", AttrValue::Float(0.5f)}}},
    {"BinaryCrossEntropy", "x", "y",
     [](double p, double t) { return -t * std::log(p) - (1 - t) * std::log(1 - p); }},
    {"KLDiv", "x", "target", [](double p, double t) { return t == 0 ? 0 : t * (std::log(t) - p); }},
    {"SoftMarginLoss", "input_x", "input_y",
     [](double p, double t) { return std::log(1 + std::exp(-p * t)); }},
};

TEST(PointwiseLoss, IsGatheredByItsAttribute) {
  for (const LossCase& test : kLossCases) {
    for (const std::string reduction : {"none", "mean", "sum"}) {
      OpCall call{.type = test.type,
                  .inputs = {{test.first, FromDoubles(kF32, {2, 3}, kPredict)},
                             {test.second, FromDoubles(kF32, {2, 3}, kLabel)}},
                  .attrs = test.attrs};
      call.attrs.emplace_back("reduction", AttrValue::String(reduction));
      const Tensor loss = RunOne(call);
      std::vector<double> points;
      double sum = 0;
      for (size_t i = 0; i < kPredict.size(); ++i) {
        points.push_back(test.point(kPredict[i], kLabel[i]));
        sum += points.back();
      }
      if (reduction == "none") {
        EXPECT_EQ(loss.shape(), Shape({2, 3}));
        op_test::NoteNear(1, 1e-6);
        EXPECT_THAT(ToDoubles(loss), testing::Pointwise(testing::FloatNear(1e-6), points));
      } else {
        EXPECT_EQ(loss.shape(), Shape());
        EXPECT_TRUE(Near(ToDoubles(loss)[0], reduction == "mean" ? sum / 6 : sum)) << test.type;
      }
    }
  }
}

TEST(PointwiseLoss, KLDivDividesByTheBatch) {
  const Tensor x = FromDoubles(kF32, {2, 2}, {-1, -1, -1, -1});
  const Tensor target = FromDoubles(kF32, {2, 2}, {1, 1, 1, 0});
  EXPECT_EQ(ToDoubles(RunOne({.type = "KLDiv",
                              .inputs = {{"x", x}, {"target", target}},
                              .attrs = {{"reduction", AttrValue::String("batchmean")}}})),
            (std::vector<double>{1.5}));
}

TEST(PointwiseLoss, WithoutAttribute) {
  const Tensor x = FromDoubles(kF32, {3}, {1, 2, 3});
  EXPECT_EQ(ToDoubles(RunOne({.type = "L2Loss", .inputs = {{"x", x}}})), (std::vector<double>{7}));
  const Tensor zero = FromDoubles(kF32, {3}, {0, 1.75, 0});
  EXPECT_EQ(
      ToDoubles(RunOne({.type = "SmoothL1Loss", .inputs = {{"predict", x}, {"label", zero}}})),
      (std::vector<double>{0.5, 0.03125, 2.5}));
  const Tensor logit = FromDoubles(kF32, {2}, {0.5, -200});
  const Tensor target = FromDoubles(kF32, {2}, {1, 1});
  const std::vector<double> loss =
      ToDoubles(RunOne({.type = "SigmoidCrossEntropyWithLogits",
                        .inputs = {{"predict", logit}, {"target", target}}}));
  EXPECT_TRUE(Near(loss[0], -std::log(1 / (1 + std::exp(-0.5)))));
  EXPECT_EQ(loss[1], 200);
}

TEST(PointwiseLoss, AWeightCounts) {
  const Tensor x = FromDoubles(kF32, {2}, {0.5, 0.25});
  const Tensor y = FromDoubles(kF32, {2}, {1, 1});
  const Tensor weight = FromDoubles(kF32, {2}, {2, 0});
  EXPECT_TRUE(Near(ToDoubles(RunOne({.type = "BinaryCrossEntropy",
                                     .inputs = {{"x", x}, {"y", y}, {"weight", weight}}}))[0],
                   std::log(2.0)));
}

// The gradient of a mean by the difference quotient of the loss itself.
struct LossGradCase {
  std::string type;
  std::vector<std::string> ports;  // prediction, target, incoming gradient
  Point point;
  bool reduces = true;
};

const LossGradCase kGrads[] = {
    {"MseLossGrad",
     {"predict", "label", "dout"},
     [](double p, double t) { return (p - t) * (p - t); }},
    {"SmoothL1LossGradV2",
     {"predict", "label", "dout"},
     [](double p, double t) {
       const double d = std::fabs(p - t);
       return d < 1 ? 0.5 * d * d : d - 0.5;
     }},
    {"BinaryCrossEntropyGrad",
     {"x", "y", "grad_output"},
     [](double p, double t) { return -t * std::log(p) - (1 - t) * std::log(1 - p); }},
    {"SigmoidCrossEntropyWithLogitsGrad",
     {"predict", "target", "dout"},
     [](double p, double t) { return std::log(1 + std::exp(p)) - p * t; },
     false},
};

TEST(PointwiseLoss, GradientsAreSlopes) {
  for (const LossGradCase& test : kGrads) {
    for (const std::string reduction : {"mean", "sum", "none"}) {
      OpCall call{.type = test.type,
                  .inputs = {{test.ports[0], FromDoubles(kF32, {6}, kPredict)},
                             {test.ports[1], FromDoubles(kF32, {6}, kLabel)},
                             {test.ports[2], FromDoubles(kF32, {1}, {3})}}};
      if (test.reduces) call.attrs.emplace_back("reduction", AttrValue::String(reduction));
      const std::vector<double> grad = ToDoubles(RunOne(call));
      const double divisor = test.reduces && reduction == "mean" ? 6 : 1;
      for (size_t i = 0; i < kPredict.size(); ++i) {
        const double slope = (test.point(kPredict[i] + 1e-6, kLabel[i]) -
                              test.point(kPredict[i] - 1e-6, kLabel[i])) /
                             2e-6;
        EXPECT_NEAR(grad[i], 3 * slope / divisor, 1e-5) << test.type << " " << reduction;
      }
    }
  }
}

TEST(PointwiseLoss, RefusesAnUnknownReduction) {
  const Tensor x = FromDoubles(kF32, {1}, {1});
  const Status status = FailOf({.type = "MseLoss",
                                .inputs = {{"predict", x}, {"label", x}},
                                .attrs = {{"reduction", AttrValue::String("max")}}});
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("\"reduction\" is \"max\""));
}

}  // namespace
}  // namespace npumesh
