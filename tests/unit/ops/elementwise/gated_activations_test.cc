// GLU, GeGluV2, GeluMul and the gradients of GLU and SwiGlu.
#include <functional>

#include "tests/unit/ops/elementwise/activation_formulas.h"
#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

using HalvesFunction = std::function<long double(long double a, long double b)>;

long double GeluErf(long double x) {
  return x * erfcl(-x / sqrtl(2)) / 2;
}

const Shape kShape = {2, 4, 3};

Tensor Halved(DataType dtype, const Shape& shape) {
  std::vector<double> values = ToDoubles(Pattern(DataType::kFloat, shape));
  for (size_t i = 0; i < values.size(); ++i) values[i] = (values[i] - 3) / 2;
  return FromDoubles(dtype, shape, values);
}

// The elements of x at a position of a half, for both halves along dimension 1.
std::pair<size_t, size_t> Pair(Ints at) {
  const size_t a = Index(kShape, at);
  at[1] += 2;
  return {a, Index(kShape, at)};
}

struct HalvesCase {
  std::string type;
  Attrs attrs;
  std::vector<HalvesFunction> outputs;
};

TEST(Halves, AgreeWithTheFormula) {
  const HalvesFunction glu = [](long double a, long double b) { return a * Sigma(b); };
  const HalvesCase cases[] = {
      {"GLU", {}, {glu}},
      {"GeGluV2",
       {},
       {[](long double a, long double b) { return a * GeluTanh(b); },
        [](long double, long double b) { return GeluTanh(b); }}},
      {"GeGluV2",
       {{"approximate", AttrValue::Int(0)}, {"activate_left", AttrValue::Bool(true)}},
       {[](long double a, long double b) { return GeluErf(a) * b; },
        [](long double a, long double) { return GeluErf(a); }}},
  };
  for (const HalvesCase& test : cases) {
    for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
      const Tensor x = Halved(dtype, kShape);
      OpCall call{.type = test.type, .inputs = {{"x", x}}, .attrs = test.attrs};
      call.attrs.emplace_back("dim", AttrValue::Int(-2));
      const Result<std::vector<Tensor>> out = RunOp(call);
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      for (size_t port = 0; port < test.outputs.size(); ++port) {
        ASSERT_EQ((*out)[port].type(), (TensorType{dtype, {2, 2, 3}}));
        for (const Ints& at : Positions(Shape{2, 2, 3})) {
          const auto [a, b] = Pair(at);
          const auto expected =
              static_cast<double>(test.outputs[port](ToDoubles(x)[a], ToDoubles(x)[b]));
          EXPECT_NEAR(ToDoubles((*out)[port])[Index(Shape{2, 2, 3}, at)], expected,
                      Ulp(dtype, expected));
        }
      }
    }
  }
}

// GELU of the first half of the last dimension, times the second.
TEST(GeluMul, AgreesWithTheFormula) {
  for (int turn = 0; turn < 80; ++turn) {
    const DataType types[] = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16};
    const DataType dtype = types[turn % 3];
    const int64_t rows = 1 + turn % 4, width = 1 + turn * 7 % 11;
    const Tensor x = Halved(dtype, {rows, 2 * width});
    const bool tanh = turn % 2 == 0;
    const Result<std::vector<Tensor>> out =
        RunOp({.type = "GeluMul",
               .inputs = {{"x", x}},
               .attrs = {{"approximate", AttrValue::String(tanh ? "tanh" : "none")}}});
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    ASSERT_EQ((*out)[0].type(), (TensorType{dtype, {rows, width}}));
    const std::vector<double> values = ToDoubles(x), y = ToDoubles((*out)[0]);
    for (size_t i = 0; i < y.size(); ++i) {
      const auto n = static_cast<size_t>(width);
      const size_t a = i / n * 2 * n + i % n;
      const long double gelu = tanh ? GeluTanh(values[a]) : GeluErf(values[a]);
      const auto expected = static_cast<double>(gelu * static_cast<long double>(values[a + n]));
      EXPECT_NEAR(y[i], expected, Ulp(dtype, expected)) << turn;
    }
  }
}

// Against difference quotients of the function whose gradient it is.
TEST(Halves, GradientsAreSlopes) {
  const std::pair<const char*, HalvesFunction> cases[] = {
      {"GLUGrad", [](long double a, long double b) { return a * Sigma(b); }},
      {"SwiGluGrad", [](long double a, long double b) { return a * Sigma(a) * b; }},
  };
  constexpr long double kStep = 1e-5L;
  for (const auto& [type, function] : cases) {
    const Tensor x = Halved(DataType::kFloat, kShape);
    const Tensor grad = Pattern(DataType::kFloat, {2, 2, 3}, 4);
    const Tensor y = RunOne({.type = type,
                             .inputs = {{"y_grad", grad}, {"x", x}},
                             .attrs = {{"dim", AttrValue::Int(1)}}});
    ASSERT_EQ(y.shape(), kShape);
    for (const Ints& at : Positions(Shape{2, 2, 3})) {
      const auto [a, b] = Pair(at);
      const long double u = ToDoubles(x)[a], v = ToDoubles(x)[b];
      const double g = ToDoubles(grad)[Index(Shape{2, 2, 3}, at)];
      const auto slope_a =
          static_cast<double>((function(u + kStep, v) - function(u - kStep, v)) / (2 * kStep));
      const auto slope_b =
          static_cast<double>((function(u, v + kStep) - function(u, v - kStep)) / (2 * kStep));
      EXPECT_NEAR(ToDoubles(y)[a], g * slope_a, 1e-6 * (1 + std::fabs(g))) << type;
      EXPECT_NEAR(ToDoubles(y)[b], g * slope_b, 1e-6 * (1 + std::fabs(g))) << type;
    }
  }
}

}  // namespace
}  // namespace npumesh
