// Operators of two operands: every dtype against plain arithmetic, bit for bit.
#include <functional>

#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

class BinaryTest : public testing::Test {
 protected:
  Tensor Run(const std::string& type, const Tensor& a, const Tensor& b) {
    return RunOne({.type = type, .inputs = {{"x1", a}, {"x2", b}}});
  }
};

constexpr int64_t kCount = 2011;  // four blocks, the last one odd

// ---- floats ----

template <typename T>
using BinaryFunction = T (*)(T, T);

template <typename T>
struct FloatCase {
  const char* type;
  BinaryFunction<T> formula;
};

template <typename T>
std::vector<FloatCase<T>> FloatCases() {
  return {
      {"Add", [](T a, T b) { return a + b; }},
      {"AddV2", [](T a, T b) { return a + b; }},
      {"Sub", [](T a, T b) { return a - b; }},
      {"Mul", [](T a, T b) { return a * b; }},
      {"RealDiv", [](T a, T b) { return a / b; }},
      {"Div", [](T a, T b) { return a / b; }},
      {"FloorDiv",
       [](T a, T b) {
         const bool below = std::isinf(b) && std::isfinite(a) && a != 0 && (a < 0) != (b < 0);
         return below ? T(-1) : std::floor(a / b);
       }},
      {"Pow", [](T a, T b) { return std::pow(a, b); }},
      {"Maximum",
       [](T a, T b) { return std::isnan(a) || std::isnan(b) ? T(NAN) : std::max(b, a); }},
      {"Minimum",
       [](T a, T b) { return std::isnan(a) || std::isnan(b) ? T(NAN) : std::min(b, a); }},
  };
}

// T is the storage type, C the type the formula is evaluated in.
template <typename T, typename C>
void CheckFloats(DataType dtype) {
  const std::vector<T> a = AnyBits<T>(kCount, 1);
  const std::vector<T> b = AnyBits<T>(kCount, 2);
  for (const FloatCase<C>& test : FloatCases<C>()) {
    std::vector<T> expected;
    for (size_t i = 0; i < a.size(); ++i) {
      expected.push_back(T(test.formula(static_cast<C>(a[i]), static_cast<C>(b[i]))));
    }
    const Tensor y = RunOne(
        {.type = test.type,
         .inputs = {{"x1", Make<T>(dtype, {kCount}, a)}, {"x2", Make<T>(dtype, {kCount}, b)}}});
    EXPECT_EQ(y.dtype(), dtype);
    ExpectSame<T>(y, expected, fmt::format("{} {}", test.type, Name(dtype)));
  }
}

TEST_F(BinaryTest, FloatingResultsAreTheFormulaRoundedOnce) {
  CheckFloats<float, float>(kF32);
  CheckFloats<Float16, float>(kF16);
  CheckFloats<Bfloat16, float>(kBf16);
  CheckFloats<double, double>(kF64);
}

TEST_F(BinaryTest, DivisionByZeroInFloatsGivesInfinityAndNan) {
  const Tensor a = FromDoubles(kF32, {3}, {1, -1, 0});
  const Tensor y = Run("RealDiv", a, FromDoubles(kF32, {1}, {0}));
  const float infinity = std::numeric_limits<float>::infinity();
  ExpectSame<float>(y, {infinity, -infinity, NAN}, "x / 0");
}

TEST_F(BinaryTest, PowerFollowsIeee) {
  const Tensor a = FromDoubles(kF32, {6}, {0, -2, -2, 3, 2, INFINITY});
  const Tensor b = FromDoubles(kF32, {6}, {0, 0.5, 3, 2, -1, 0});
  ExpectSame<float>(Run("Pow", a, b), {1, NAN, -8, 9, 0.5, 1}, "Pow");
}

// Squares and cubes, rounded once, whatever else stands in the block: alone they are computed in
// vectors.
TEST_F(BinaryTest, SmallPowersAreProducts) {
  const std::vector<float> a = AnyBits<float>(700, 3);
  for (const int exponent : {2, 3}) {
    std::vector<float> expected, exponents(a.size(), static_cast<float>(exponent));
    for (const float x : a) {
      const double wide = x;
      expected.push_back(static_cast<float>(exponent == 2 ? wide * wide : wide * wide * wide));
    }
    const Tensor base = Make<float>(kF32, {700}, a);
    ExpectSame<float>(Run("Pow", base, FromDoubles(kF32, {}, {double(exponent)})), expected, "one");
    exponents[0] = 1.0f;
    expected[0] = a[0];
    ExpectSame<float>(Run("Pow", base, Make<float>(kF32, {700}, exponents)), expected,
                      "among others");
  }
}

TEST_F(BinaryTest, FloorModTakesTheSignOfTheDivisor) {
  const std::vector<double> a = {7, -7, 7, -7, 6, 5, 5.5};
  const std::vector<double> b = {3, 3, -3, -3, 3, 0, 2};
  const std::vector<double> floats = {1, 2, -2, -1, 0, NAN, 1.5};
  for (const DataType dtype : kReals) {
    const Tensor y = Run("FloorMod", FromDoubles(dtype, {7}, a), FromDoubles(dtype, {7}, b));
    EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, {7}, floats)) || std::isnan(ToDoubles(y)[5]))
        << Name(dtype);
  }
  const Tensor ints = Run("FloorMod", Make<int32_t>(DataType::kInt32, {5}, {7, -7, 7, -7, 6}),
                          Make<int32_t>(DataType::kInt32, {5}, {3, 3, -3, -3, 3}));
  EXPECT_EQ(ValuesOf<int32_t>(ints), (std::vector<int32_t>{1, 2, -2, -1, 0}));
}

TEST_F(BinaryTest, ZerosAndInfinitiesHaveTheSignsOfNumpy) {
  const double inf = INFINITY;
  struct Case {
    const char* type;
    double a, b, expected;
  };
  const Case cases[] = {
      {"FloorDiv", 1, -inf, -1}, {"FloorDiv", -1, inf, -1},     {"FloorDiv", 1, inf, 0},
      {"FloorDiv", -1, -inf, 0}, {"FloorDiv", -0.0, inf, -0.0}, {"FloorMod", 6, 3, 0},
      {"FloorMod", 6, -3, -0.0}, {"FloorMod", -6, 3, 0},        {"FloorMod", -0.0, 2, 0},
      {"FloorMod", 0, -2, -0.0}, {"Maximum", 0, -0.0, 0},       {"Maximum", -0.0, 0, -0.0},
      {"Minimum", 0, -0.0, 0},   {"Minimum", -0.0, 0, -0.0}};
  for (const Case& c : cases) {
    for (const DataType dtype : kReals) {
      const Tensor y =
          Run(c.type, FromDoubles(dtype, {2}, {c.a, c.a}), FromDoubles(dtype, {2}, {c.b, c.b}));
      EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, {2}, {c.expected, c.expected})))
          << fmt::format("{} {} {} {}: {}", c.type, Name(dtype), c.a, c.b, ToDoubles(y)[0]);
    }
  }
}

// ---- integers ----

struct IntegerCase {
  const char* type;
  __int128 (*formula)(__int128, __int128);
  bool divides;
};

__int128 FloorQuotient(__int128 a, __int128 b) {
  const __int128 quotient = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

const IntegerCase kIntegerCases[] = {
    {"Add", [](__int128 a, __int128 b) { return a + b; }, false},
    {"Sub", [](__int128 a, __int128 b) { return a - b; }, false},
    {"Mul",
     [](__int128 a, __int128 b) {
       return static_cast<__int128>(static_cast<unsigned __int128>(a) *
                                    static_cast<unsigned __int128>(b));
     },
     false},
    {"Maximum", [](__int128 a, __int128 b) { return a > b ? a : b; }, false},
    {"Minimum", [](__int128 a, __int128 b) { return a < b ? a : b; }, false},
    {"Div", FloorQuotient, true},
    {"FloorDiv", FloorQuotient, true},
    {"FloorMod", [](__int128 a, __int128 b) { return a - FloorQuotient(a, b) * b; }, true},
};

TEST_F(BinaryTest, IntegersWrap) {
  for (const DataType dtype : kIntegers) {
    WithStorage(dtype, [&](auto tag) {
      using T = decltype(tag);
      if constexpr (std::is_integral_v<T>) {
        std::vector<T> a = AnyBits<T>(kCount, 4);
        std::vector<T> b = AnyBits<T>(kCount, 5);
        const T limits[] = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(-1),
                            T(1)};
        for (size_t i = 0; i < 16; ++i) {
          a[i] = limits[i / 4];
          b[i] = limits[i % 4];
        }
        for (const IntegerCase& test : kIntegerCases) {
          std::vector<T> expected;
          for (size_t i = 0; i < a.size(); ++i) {
            if (test.divides && b[i] == 0) b[i] = 3;
            expected.push_back(static_cast<T>(test.formula(a[i], b[i])));
          }
          const Tensor y = Run(test.type, Make<T>(dtype, {kCount}, a), Make<T>(dtype, {kCount}, b));
          EXPECT_EQ(y.dtype(), dtype);
          ExpectSame<T>(y, expected, fmt::format("{} {}", test.type, Name(dtype)));
        }
      }
      return 0;
    });
  }
}

TEST_F(BinaryTest, IntegerPowersMultiplyWithWrap) {
  const Tensor base = Make<int32_t>(DataType::kInt32, {9}, {2, 2, 3, 0, 0, 1, -1, -1, 10});
  const Tensor exponent = Make<int32_t>(DataType::kInt32, {9}, {31, -1, 4, 0, -2, -7, -3, -4, 11});
  EXPECT_EQ(ValuesOf<int32_t>(Run("Pow", base, exponent)),
            (std::vector<int32_t>{INT32_MIN, 0, 81, 1, 0, 1, -1, 1, 1215752192}));
  const Tensor bytes = Run("Pow", Make<uint8_t>(DataType::kUint8, {2}, {3, 2}),
                           Make<uint8_t>(DataType::kUint8, {2}, {6, 200}));
  EXPECT_EQ(ValuesOf<uint8_t>(bytes), (std::vector<uint8_t>{729 % 256, 0}));
}

TEST_F(BinaryTest, RealDivOfIntegersTruncatesAndSaturates) {
  const Tensor a = Make<int32_t>(DataType::kInt32, {6}, {7, -7, 1, -1, 0, 6});
  const Tensor b = Make<int32_t>(DataType::kInt32, {6}, {2, 2, 0, 0, 0, 3});
  EXPECT_EQ(ValuesOf<int32_t>(Run("RealDiv", a, b)),
            (std::vector<int32_t>{3, -3, INT32_MAX, INT32_MIN, 0, 2}));
}

TEST_F(BinaryTest, RealDivOfBoolsIsFloat) {
  const Tensor a = Make<uint8_t>(kBool, {2}, {1, 0});
  const Tensor y = Run("RealDiv", a, Make<uint8_t>(kBool, {2}, {1, 1}));
  EXPECT_EQ(y.dtype(), kF32);
  EXPECT_EQ(ValuesOf<float>(y), (std::vector<float>{1, 0}));
}

TEST_F(BinaryTest, BoolArithmeticIsLogic) {
  const Tensor a = Make<uint8_t>(kBool, {4}, {0, 0, 1, 1});
  const Tensor b = Make<uint8_t>(kBool, {4}, {0, 1, 0, 1});
  const struct {
    const char* type;
    std::vector<uint8_t> expected;
  } kCases[] = {{"Add", {0, 1, 1, 1}},
                {"Sub", {0, 1, 1, 0}},
                {"Mul", {0, 0, 0, 1}},
                {"Maximum", {0, 1, 1, 1}},
                {"Minimum", {0, 0, 0, 1}}};
  for (const auto& test : kCases) {
    const Tensor y = Run(test.type, a, b);
    EXPECT_EQ(y.dtype(), kBool);
    EXPECT_EQ(ValuesOf<uint8_t>(y), test.expected) << test.type;
  }
}

// ---- promotion ----

struct PromotionCase {
  TensorType a, b;
  DataType expected;
};

TEST_F(BinaryTest, MixedTypesPromoteAsInPyTorch) {
  const PromotionCase kCases[] = {
      {{kF16, {2}}, {DataType::kInt64, {2}}, kF16},
      {{kF16, {2}}, {DataType::kInt64, {}}, kF16},
      {{DataType::kInt64, {}}, {kBf16, {2}}, kBf16},
      {{kF16, {2}}, {kBf16, {2}}, kF32},
      {{kF16, {2}}, {kF32, {2}}, kF32},
      {{kF16, {2}}, {kF32, {}}, kF16},
      {{kF32, {2}}, {kF64, {}}, kF32},
      {{kF32, {2}}, {kF64, {1}}, kF64},
      {{DataType::kInt32, {2}}, {kF32, {}}, kF32},
      {{DataType::kInt32, {2}}, {DataType::kInt64, {}}, DataType::kInt32},
      {{DataType::kInt32, {2}}, {DataType::kInt64, {2}}, DataType::kInt64},
      {{DataType::kInt8, {2}}, {DataType::kUint8, {2}}, DataType::kInt16},
      {{DataType::kUint8, {2}}, {DataType::kInt32, {2}}, DataType::kInt32},
      {{DataType::kUint32, {2}}, {DataType::kInt32, {2}}, DataType::kInt64},
      {{kBool, {2}}, {DataType::kInt8, {2}}, DataType::kInt8},
      {{kBool, {2}}, {DataType::kInt64, {}}, DataType::kInt64},
      {{kF32, {}}, {kF16, {}}, kF32},
  };
  for (const PromotionCase& test : kCases) {
    const Tensor a =
        FromDoubles(test.a.dtype, test.a.shape,
                    std::vector<double>(static_cast<size_t>(test.a.shape.elements()), 1));
    const Tensor b =
        FromDoubles(test.b.dtype, test.b.shape,
                    std::vector<double>(static_cast<size_t>(test.b.shape.elements()), 1));
    const Tensor y = Run("Mul", a, b);
    EXPECT_EQ(Name(y.dtype()), Name(test.expected)) << test.a.ToString() << test.b.ToString();
    for (const double value : ToDoubles(y)) EXPECT_EQ(value, 1.0);
  }
}

}  // namespace
}  // namespace npumesh
