// Activations: accuracy in float over the whole range, both 16-bit floats, exact special values.
#include "tests/unit/op_reference.h"
#include "tests/unit/ops/elementwise/activation_formulas.h"

namespace npumesh {
namespace {

class ActivationTest : public testing::Test {
 protected:
  Tensor Run(const std::string& type, const Tensor& x,
             std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
    return RunOne({.type = type, .inputs = {{"x", x}}, .attrs = std::move(attrs)});
  }
};

long double Swish(double x, double scale) {
  return x * Sigma(static_cast<long double>(x) * scale);
}

// The tanh form, as 1 + tanh(u) = 2 sigma(2u).
long double GeluSigma(double x) {
  const long double root = std::sqrt(2 / std::acos(-1.0L));
  const long double wide = x;
  return x * Sigma(2 * root * (wide + 0.044715L * wide * wide * wide));
}

struct Activation {
  const char* type;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  double (*formula)(double);
  int ulps;
};

const Activation kActivations[] = {
    {"Relu", {}, [](double x) { return x <= 0 ? 0.0 : x; }, 0},
    {"Sigmoid", {}, [](double x) { return static_cast<double>(Sigma(x)); }, 2},
    {"Tanh", {}, [](double x) { return std::tanh(x); }, 1},
    {"Gelu", {}, [](double x) { return static_cast<double>(GeluSigma(x)); }, 1},
    {"GeluV2",
     {{"approximate", AttrValue::String("tanh")}},
     [](double x) { return static_cast<double>(GeluSigma(x)); },
     1},
    {"GeluV2", {}, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, 1},
    {"FastGelu", {}, [](double x) { return static_cast<double>(Swish(x, 1.702)); }, 1},
    {"Swish", {}, [](double x) { return static_cast<double>(Swish(x, 1)); }, 1},
    {"Swish",
     {{"scale", AttrValue::Float(1.5f)}},
     [](double x) { return static_cast<double>(Swish(x, 1.5)); },
     1},
};

std::vector<float> ActivationArguments() {
  std::vector<float> values = AnyBits<float>(40000, 41);
  Random random(42);
  for (int i = 0; i < 40000; ++i) {
    values.push_back(static_cast<float>((random.Unit() - 0.5) * 220));
    values.push_back(static_cast<float>((random.Unit() - 0.5) * 12));
  }
  for (const float value : SpecialFloats()) values.push_back(value);
  return values;
}

TEST_F(ActivationTest, FloatIsAccurateOverTheWholeRange) {
  const std::vector<float> x = ActivationArguments();
  const Tensor input = Make<float>(kF32, {static_cast<int64_t>(x.size())}, x);
  for (const Activation& test : kActivations) {
    const Tensor y = Run(test.type, input, test.attrs);
    ASSERT_EQ(y.type(), input.type());
    for (size_t i = 0; i < x.size(); ++i) {
      const float expected = static_cast<float>(test.formula(x[i]));
      ASSERT_LE(UlpsBetween(y.as<float>()[i], expected), test.ulps)
          << test.type << "(" << x[i] << ") is " << y.as<float>()[i] << ", expected " << expected;
    }
  }
}

TEST_F(ActivationTest, HalvesAreTheFormulaRoundedOnce) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  for (const Activation& test : kActivations) {
    const Tensor half = Run(test.type, Make<uint16_t>(kF16, {65536}, bits), test.attrs);
    const Tensor bfloat = Run(test.type, Make<uint16_t>(kBf16, {65536}, bits), test.attrs);
    for (size_t i = 0; i < bits.size(); ++i) {
      const float x = Float16::ToFloat(bits[i]);
      ASSERT_TRUE(Same(half.as<Float16>()[i], Float16(static_cast<float>(test.formula(x)))))
          << test.type << "(" << x << ")";
      const float b = Bfloat16::ToFloat(bits[i]);
      ASSERT_TRUE(Same(bfloat.as<Bfloat16>()[i], Bfloat16(static_cast<float>(test.formula(b)))))
          << test.type << "(" << b << ")";
    }
  }
}

// ---- SwiGlu ----

struct SwiGluCase {
  Shape shape;
  int64_t dim;
};

TEST_F(ActivationTest, SwiGluGatesTheSecondHalf) {
  const SwiGluCase kCases[] = {{{2, 6}, -1},    {{4, 3}, 0},    {{2, 4, 3}, 1}, {{3, 2048}, 1},
                               {{2, 2050}, -1}, {{2, 0}, 1},    {{0, 4}, -1},   {{2}, 0},
                               {{2, 2, 5}, -2}, {{1, 1030}, -1}};
  for (const SwiGluCase& test : kCases) {
    for (const DataType dtype : {kF32, kF16, kBf16}) {
      const int axis = static_cast<int>(test.dim < 0 ? test.dim + test.shape.rank() : test.dim);
      std::vector<double> values(static_cast<size_t>(test.shape.elements()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 61) / 8 - 3.5;
      const Tensor y = Run("SwiGlu", FromDoubles(dtype, test.shape, values),
                           {{"dim", AttrValue::Int(test.dim)}});
      Shape expected_shape = test.shape;
      expected_shape[axis] /= 2;
      ASSERT_EQ(y.type(), (TensorType{dtype, expected_shape}));

      size_t inner = 1;
      for (int i = axis + 1; i < test.shape.rank(); ++i) {
        inner *= static_cast<size_t>(test.shape[i]);
      }
      const size_t run = inner * static_cast<size_t>(expected_shape[axis]);
      std::vector<double> expected;
      for (size_t i = 0; i < static_cast<size_t>(y.elements()); ++i) {
        const size_t gate = i / run * 2 * run + i % run;
        expected.push_back(static_cast<double>(Swish(values[gate], 1) * values[gate + run]));
      }
      EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, expected_shape, expected)))
          << test.shape.ToString() << " " << Name(dtype);
    }
  }
}

}  // namespace
}  // namespace npumesh
