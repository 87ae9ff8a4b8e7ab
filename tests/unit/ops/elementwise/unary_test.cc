// Operators of one operand: accuracy over the whole range, every dtype, exact special values.
#include <functional>

#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

class UnaryTest : public testing::Test {
 protected:
  Tensor Run(const std::string& type, const Tensor& x,
             std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
    return RunOne({.type = type, .inputs = {{"x", x}}, .attrs = std::move(attrs)});
  }
};

struct RealCase {
  const char* type;
  double (*formula)(double);
  int ulps;  // allowed in float
};

// Formulas in double serve float and the 16-bit floats; double itself is the same C library.
const RealCase kRealCases[] = {
    {"Sqrt", [](double x) { return std::sqrt(x); }, 0},
    {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }, 1},
    {"Neg", [](double x) { return -x; }, 0},
    {"Reciprocal", [](double x) { return 1 / x; }, 0},
    {"Abs", [](double x) { return std::fabs(x); }, 0},
    {"Square", [](double x) { return x * x; }, 0},
    {"Sign", [](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : x); }, 0},
    {"Floor", [](double x) { return std::floor(x); }, 0},
    {"Ceil", [](double x) { return std::ceil(x); }, 0},
    {"Exp", [](double x) { return std::exp(x); }, 1},
    {"Expm1", [](double x) { return std::expm1(x); }, 1},
    {"Log", [](double x) { return std::log(x); }, 1},
    {"Log1p", [](double x) { return std::log1p(x); }, 1},
    {"Sin", [](double x) { return std::sin(x); }, 1},
    {"Cos", [](double x) { return std::cos(x); }, 1},
    {"Erf", [](double x) { return std::erf(x); }, 1},
};

// Any bit pattern, numbers around the interesting range, and the special ones.
std::vector<float> UnaryArguments() {
  std::vector<float> values = AnyBits<float>(60000, 11);
  Random random(12);
  for (int i = 0; i < 60000; ++i) {
    values.push_back(static_cast<float>((random.Unit() - 0.5) * 220));
  }
  for (int i = 0; i < 20000; ++i) values.push_back(static_cast<float>(random.Unit() * 4 - 2));
  for (const float value : SpecialFloats()) values.push_back(value);
  return values;
}

TEST_F(UnaryTest, FloatIsAccurateOverTheWholeRange) {
  const std::vector<float> x = UnaryArguments();
  const Tensor input = Make<float>(kF32, {static_cast<int64_t>(x.size())}, x);
  for (const RealCase& test : kRealCases) {
    const Tensor y = Run(test.type, input);
    ASSERT_EQ(y.type(), input.type());
    for (size_t i = 0; i < x.size(); ++i) {
      const float expected = static_cast<float>(test.formula(x[i]));
      ASSERT_LE(UlpsBetween(y.as<float>()[i], expected), test.ulps)
          << test.type << "(" << x[i] << ") is " << y.as<float>()[i] << ", expected " << expected;
      if (expected == 0) {
        ASSERT_EQ(std::signbit(y.as<float>()[i]), std::signbit(expected))
            << test.type << "(" << x[i] << "): sign of zero";
      }
    }
  }
}

TEST_F(UnaryTest, EveryFloat16IsTheFormulaRoundedOnce) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  const Tensor input = Make<uint16_t>(kF16, {65536}, bits);
  for (const RealCase& test : kRealCases) {
    const Tensor y = Run(test.type, input);
    for (size_t i = 0; i < bits.size(); ++i) {
      const double x = Float16::ToFloat(bits[i]);
      const Float16 expected(static_cast<float>(test.formula(x)));
      ASSERT_TRUE(Same(y.as<Float16>()[i], expected)) << test.type << "(" << x << ")";
    }
  }
}

TEST_F(UnaryTest, EveryBfloat16IsTheFormulaRoundedOnce) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  const Tensor input = Make<uint16_t>(kBf16, {65536}, bits);
  for (const RealCase& test : kRealCases) {
    const Tensor y = Run(test.type, input);
    for (size_t i = 0; i < bits.size(); ++i) {
      const double x = Bfloat16::ToFloat(bits[i]);
      const Bfloat16 expected(static_cast<float>(test.formula(x)));
      ASSERT_TRUE(Same(y.as<Bfloat16>()[i], expected)) << test.type << "(" << x << ")";
    }
  }
}

TEST_F(UnaryTest, DoubleIsTheCLibrary) {
  const std::vector<double> x = AnyBits<double>(2000, 13);
  const Tensor input = Make<double>(kF64, {2000}, x);
  for (const RealCase& test : kRealCases) {
    std::vector<double> expected;
    for (const double value : x) expected.push_back(test.formula(value));
    ExpectSame<double>(Run(test.type, input), expected, test.type);
  }
}

TEST_F(UnaryTest, HugeAnglesAreReducedExactly) {
  const std::vector<float> x = {1e6f, 1048576.0f, 2097152.0f, 1e10f, 1e22f, 3.4e38f, -3.4e38f};
  const Tensor input = Make<float>(kF32, {7}, x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(UlpsBetween(Run("Sin", input).as<float>()[i], std::sin(double{x[i]})), 1) << x[i];
    EXPECT_LE(UlpsBetween(Run("Cos", input).as<float>()[i], std::cos(double{x[i]})), 1) << x[i];
  }
}

TEST_F(UnaryTest, ExpTakesBaseScaleAndShift) {
  const Tensor x = FromDoubles(kF32, {4}, {0, 1, -2, 3});
  const Tensor two = Run("Exp", x, {{"base", AttrValue::Float(2)}});
  EXPECT_EQ(ValuesOf<float>(two), (std::vector<float>{1, 2, 0.25, 8}));
  const Tensor all = Run("Exp", x,
                         {{"base", AttrValue::Float(2)},
                          {"scale", AttrValue::Float(3)},
                          {"shift", AttrValue::Float(1)}});
  EXPECT_EQ(ValuesOf<float>(all), (std::vector<float>{2, 16, 1.0f / 32, 1024}));
  const Tensor wide = Run("Exp", FromDoubles(kF64, {2}, {3, -1}), {{"base", AttrValue::Float(10)}});
  EXPECT_EQ(ValuesOf<double>(wide), (std::vector<double>{1000, 0.1}));
}

TEST_F(UnaryTest, LogTakesBaseScaleAndShift) {
  const Tensor x = FromDoubles(kF32, {5}, {1, 8, 0.25, 0, -1});
  ExpectSame<float>(Run("Log", x, {{"base", AttrValue::Float(2)}}), {0, 3, -2, -INFINITY, NAN},
                    "log2");
  const Tensor ten =
      Run("Log", FromDoubles(kF64, {2}, {1000, 0.01}), {{"base", AttrValue::Float(10)}});
  EXPECT_EQ(ValuesOf<double>(ten), (std::vector<double>{3, -2}));
  const Tensor shifted = Run("Log", FromDoubles(kF32, {1}, {3}),
                             {{"scale", AttrValue::Float(2)}, {"shift", AttrValue::Float(-5)}});
  EXPECT_EQ(ValuesOf<float>(shifted), (std::vector<float>{0}));
}

TEST_F(UnaryTest, LogOfIntegersIsFloat) {
  for (const DataType dtype : kIntegers) {
    const Tensor y = Run("Log", FromDoubles(dtype, {2}, {1, 4}), {{"base", AttrValue::Float(2)}});
    EXPECT_EQ(y.dtype(), kF32);
    EXPECT_EQ(ValuesOf<float>(y), (std::vector<float>{0, 2})) << Name(dtype);
  }
}

TEST_F(UnaryTest, IntegersKeepTheirType) {
  const Tensor x = Make<int8_t>(DataType::kInt8, {5}, {-128, -3, 0, 3, 127});
  const struct {
    const char* type;
    std::vector<int8_t> expected;
  } kCases[] = {{"Neg", {-128, 3, 0, -3, -127}},  {"Abs", {-128, 3, 0, 3, 127}},
                {"Sign", {-1, -1, 0, 1, 1}},      {"Square", {0, 9, 0, 9, 1}},
                {"Floor", {-128, -3, 0, 3, 127}}, {"Ceil", {-128, -3, 0, 3, 127}},
                {"Reciprocal", {0, 0, 127, 0, 0}}};
  for (const auto& test : kCases) {
    EXPECT_EQ(ValuesOf<int8_t>(Run(test.type, x)), test.expected) << test.type;
  }
}

TEST_F(UnaryTest, MulsMultipliesInFloat) {
  const AttrValue third = AttrValue::Float(1.0f / 3);
  const Tensor half =
      Run("Muls", Make<Float16>(kF16, {2}, {Float16(3.0f), Float16(1.0f)}), {{"value", third}});
  EXPECT_EQ(half.as<Float16>()[0], Float16(3.0f * (1.0f / 3)));
  EXPECT_EQ(half.as<Float16>()[1], Float16(1.0f / 3));
  const Tensor ints = Run("Muls", Make<int32_t>(DataType::kInt32, {3}, {7, -7, INT32_MAX}),
                          {{"value", AttrValue::Float(2.5f)}});
  EXPECT_EQ(ValuesOf<int32_t>(ints), (std::vector<int32_t>{17, -17, INT32_MAX}));
}

TEST_F(UnaryTest, EmptyAndScalarTensors) {
  EXPECT_EQ(Run("Exp", FromDoubles(kF32, {0, 3}, {})).shape(), Shape({0, 3}));
  EXPECT_EQ(ValuesOf<float>(Run("Exp", FromDoubles(kF32, {}, {0}))), (std::vector<float>{1}));
}

}  // namespace
}  // namespace npumesh
