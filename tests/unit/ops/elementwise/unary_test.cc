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

}  // namespace
}  // namespace npumesh
