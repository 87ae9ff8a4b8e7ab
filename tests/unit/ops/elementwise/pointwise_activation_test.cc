// Activations of one formula, and what the driver of the tables does.
#include "tests/unit/ops/elementwise/activation_formulas.h"
#include "tests/unit/ops/elementwise/pointwise_cases.h"

namespace npumesh {
namespace {

TEST(PointwiseDriver, BroadcastsOverManyBlocks) {
  for (const DataType dtype : {kF32, kF16, DataType::kInt32, DataType::kUint64}) {
    const Shape shapes[] = {{3, 700}, {3, 1}, {700}, {}, {1, 1}};
    for (const Shape& other : shapes) {
      std::vector<double> a(2100), b(static_cast<size_t>(other.elements()));
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i % 11 + 12);
      for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i % 7);
      const Tensor x1 = FromDoubles(dtype, {3, 700}, a);
      const Tensor x2 = FromDoubles(dtype, other, b);
      const std::vector<double> y =
          ToDoubles(RunOne({.type = "SquaredDifference", .inputs = {{"x1", x1}, {"x2", x2}}}));
      ASSERT_EQ(y.size(), a.size());
      for (size_t i = 0; i < y.size(); ++i) {
        const double distance = a[i] - b[SourceOf(other, {3, 700}, i)];
        ASSERT_EQ(y[i], distance * distance) << other.ToString() << " element " << i;
      }
    }
  }
}

TEST(PointwiseDriver, InfersWhatTheKernelReturns) {
  const Tensor x1 = FromDoubles(kF16, {3, 1}, {1, 2, 3});
  const Tensor x2 = FromDoubles(kF32, {1, 2}, {1, 2});
  const Result<std::vector<TensorType>> types =
      InferOp({.type = "Atan2", .inputs = {{"x1", x1}, {"x2", x2}}});
  ASSERT_TRUE(types.ok());
  EXPECT_EQ((*types)[0], (TensorType{kF32, {3, 2}}));
}

// A short name for the formula of the papers.
long double Soft(long double x) {
  return logl(1 + expl(x));
}

TEST(PointwiseActivation, AgreesWithTheFormula) {
  ExpectMatches({
      {"Relu6", {"x"}, [](const Operands& in) { return fminl(fmaxl(in[0], 0), 6); }, -8, 8},
      {"LeakyRelu",
       {"x"},
       [](const Operands& in) { return in[0] > 0 ? in[0] : 0.125L * in[0]; },
       -4,
       4,
       {{"negative_slope", F(0.125f)}}},
      {"Elu",
       {"x"},
       [](const Operands& in) {
         return in[0] > 0 ? 2 * in[0] : 2 * 1.5L * (expl(0.5L * in[0]) - 1);
       },
       -4,
       4,
       {{"alpha", F(1.5f)}, {"scale", F(2)}, {"input_scale", F(0.5f)}}},
      {"Selu",
       {"x"},
       [](const Operands& in) {
         return 1.0507009873554805L * (in[0] > 0 ? in[0] : 1.6732632423543772L * (expl(in[0]) - 1));
       }},
      {"Softsign", {"x"}, [](const Operands& in) { return in[0] / (1 + fabsl(in[0])); }},
      {"HardSigmoid",
       {"input_x"},
       [](const Operands& in) { return fminl(fmaxl(0.25L * in[0] + 0.5L, 0), 1); },
       -4,
       4,
       {{"alpha", F(0.25f)}}},
      {"HardSwish",
       {"x"},
       [](const Operands& in) { return in[0] * fminl(fmaxl(in[0] + 3, 0), 6) / 6; },
       -8,
       8},
      {"HardShrink",
       {"input_x"},
       [](const Operands& in) { return in[0] > 0.5L || in[0] < -0.5L ? in[0] : 0; }},
      {"SoftShrink",
       {"input_x"},
       [](const Operands& in) {
         return in[0] > 0.5L ? in[0] - 0.5L : in[0] < -0.5L ? in[0] + 0.5L : 0;
       }},
      {"Mish", {"x"}, [](const Operands& in) { return in[0] * tanhl(Soft(in[0])); }},
      {"LogSigmoid", {"x"}, [](const Operands& in) { return logl(Sigma(in[0])); }},
      {"Softplus", {"x"}, [](const Operands& in) { return Soft(in[0]); }},
      {"SoftplusV2",
       {"x"},
       [](const Operands& in) { return in[0] > 1.5L ? in[0] : Soft(2 * in[0]) / 2; },
       -4,
       4,
       {{"beta", F(2)}, {"threshold", F(3)}}},
  });
}

// The polynomial of the device is within 0.02 of the function that it stands for.
TEST(PointwiseActivation, FastGeluV2IsNearGelu) {
  const std::vector<double> values = {-6, -2.5, -1, -0.25, 0, 0.25, 1, 2.5, 6};
  const std::vector<double> y = ToDoubles(
      RunOne({.type = "FastGeluV2", .inputs = {{"x", FromDoubles(kF32, Shape({9}), values)}}}));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(y[i], values[i] * 0.5 * std::erfc(-values[i] / std::sqrt(2.0)), 0.02);
  }
  EXPECT_EQ(y[8], 6);
}

}  // namespace
}  // namespace npumesh
