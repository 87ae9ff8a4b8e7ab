// Gradients against the difference quotient of the function that they belong to.
// Losses and their gradients.
#include "tests/unit/ops/elementwise/activation_formulas.h"
#include "tests/unit/ops/elementwise/pointwise_cases.h"

namespace npumesh {
namespace {

using RealFunction = std::function<long double(long double)>;
using Point = std::function<double(double, double)>;

long double Slope(const RealFunction& f, long double x) {
  constexpr long double kStep = 1e-5L;
  return (f(x + kStep) - f(x - kStep)) / (2 * kStep);
}

struct SlopeCase {
  std::string type;
  RealFunction forward;
  std::string grad = "gradients";  // port of the incoming gradient
  std::string other = "features";  // port of x, or of f(x)
  bool takes_result = false;       // the other port holds f(x)
  Attrs attrs = {};
  double low = -3.9;
  double high = 4.1;
  std::vector<std::string> unused = {};  // ports that are fed but not read
};

void ExpectSlope(const SlopeCase& test, DataType dtype) {
  constexpr size_t kCount = 61;
  std::vector<double> x(kCount), dy(kCount), fed(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    x[i] = test.low + (test.high - test.low) * static_cast<double>(i) / (kCount - 1);
    dy[i] = static_cast<double>(i % 5) - 1.5;
    fed[i] = test.takes_result ? static_cast<double>(test.forward(x[i])) : x[i];
  }
  const Shape shape({static_cast<int64_t>(kCount)});
  const Tensor other = FromDoubles(dtype, shape, fed);
  OpCall call{.type = test.type,
              .inputs = {{test.grad, FromDoubles(dtype, shape, dy)}, {test.other, other}},
              .attrs = test.attrs};
  for (const std::string& port : test.unused) call.inputs.push_back({port, other});
  const std::vector<double> actual = ToDoubles(RunOne(call));
  ASSERT_EQ(actual.size(), kCount) << test.type;
  const double digits = dtype == kF64 ? 1e-8 : dtype == kF32 ? 2e-6 : dtype == kF16 ? 4e-3 : 3e-2;
  for (size_t i = 0; i < kCount; ++i) {
    const double at = test.takes_result || dtype == kF64 ? x[i] : ToDoubles(other)[i];
    const double expected = dy[i] * static_cast<double>(Slope(test.forward, at));
    EXPECT_NEAR(actual[i], expected, digits * (1 + std::fabs(expected)))
        << test.type << " " << Name(dtype) << " at " << at;
  }
}

void ExpectSlopes(const std::vector<SlopeCase>& cases) {
  for (const SlopeCase& test : cases) {
    ExpectSlope(test, kF64);
    ExpectSlope(test, kF32);
    if (!test.takes_result) {
      ExpectSlope(test, kF16);
      ExpectSlope(test, kBf16);
    }
  }
}

TEST(PointwiseGradient, OfActivationsIsTheirSlope) {
  const RealFunction relu = [](long double x) { return fmaxl(x, 0); };
  ExpectSlopes({
      {"ReluGrad", relu},
      {"Relu6Grad", [](long double x) { return fminl(fmaxl(x, 0), 6); }},
      {"LeakyReluGrad",
       [](long double x) { return x > 0 ? x : 0.25L * x; },
       "gradients",
       "features",
       false,
       {{"negative_slope", F(0.25f)}}},
      {"SoftplusGrad", [](long double x) { return logl(1 + expl(x)); }},
      {"SoftsignGrad", [](long double x) { return x / (1 + fabsl(x)); }},
      {"LogSigmoidGrad", [](long double x) { return logl(Sigma(x)); }, "grads"},
      {"GeluGrad", GeluTanh, "dy", "x", false, {}, -3.9, 4.1, {"y"}},
      {"GeluGradV2", [](long double x) { return x * erfcl(-x / sqrtl(2)) / 2; }, "dy", "x"},
      {"GeluGradV2", GeluTanh, "dy", "x", false, {{"approximate", AttrValue::String("tanh")}}},
      {"FastGeluGrad", [](long double x) { return x * Sigma(1.702L * x); }, "dy", "x"},
      {"SwishGrad",
       [](long double x) { return x * Sigma(2 * x); },
       "grad",
       "x",
       false,
       {{"scale", F(2)}},
       -3.9,
       4.1,
       {"y"}},
      {"MishGrad", [](long double x) { return x * tanhl(logl(1 + expl(x))); }, "grad", "x"},
      {"HardSwishGrad", [](long double x) { return x * fminl(fmaxl(x + 3, 0), 6) / 6; }, "grad",
       "x"},
      {"HardSigmoidGrad",
       [](long double x) { return fminl(fmaxl(0.25L * x + 0.5L, 0), 1); },
       "grads",
       "input_x",
       false,
       {{"alpha", F(0.25f)}}},
      {"HardtanhGrad", [](long double x) { return fminl(fmaxl(x, -1), 1); }, "grad", "result"},
      {"EluGradV2",
       [](long double x) { return x > 0 ? 2 * x : 3 * (expl(0.5L * x) - 1); },
       "grads",
       "activations",
       false,
       {{"alpha", F(1.5f)}, {"scale", F(2)}, {"input_scale", F(0.5f)}}},
      {"EluGradV2",
       [](long double x) { return x > 0 ? 2 * x : 3 * (expl(0.5L * x) - 1); },
       "grads",
       "activations",
       true,
       {{"alpha", F(1.5f)},
        {"scale", F(2)},
        {"input_scale", F(0.5f)},
        {"is_result", AttrValue::Bool(true)}}},
  });
}

TEST(PointwiseGradient, OfFunctionsIsTheirSlope) {
  ExpectSlopes({
      {"SigmoidGrad", Sigma, "dy", "y", true},
      {"TanhGrad", [](long double x) { return tanhl(x); }, "dy", "y", true, {}, -2, 2},
      {"SqrtGrad", [](long double x) { return sqrtl(x); }, "dy", "y", true, {}, 0.5, 9},
      {"RsqrtGrad", [](long double x) { return 1 / sqrtl(x); }, "dy", "y", true, {}, 0.5, 9},
      {"ReciprocalGrad", [](long double x) { return 1 / x; }, "dy", "y", true, {}, 0.5, 9},
      {"AsinGrad", [](long double x) { return asinl(x); }, "dy", "y", false, {}, -0.75, 0.75},
      {"AcosGrad", [](long double x) { return acosl(x); }, "dy", "y", false, {}, -0.75, 0.75},
      {"AtanGrad", [](long double x) { return atanl(x); }, "dy", "y"},
      {"AbsGrad", [](long double x) { return fabsl(x); }, "dy", "y"},
      {"AsinhGrad", [](long double x) { return asinhl(x); }, "dy", "y", true},
      {"AcoshGrad", [](long double x) { return acoshl(x); }, "dy", "y", true, {}, 1.25, 9},
  });
}

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

}  // namespace
}  // namespace npumesh
