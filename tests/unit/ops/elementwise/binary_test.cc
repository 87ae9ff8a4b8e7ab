// Operators of two operands: every dtype against plain arithmetic, bit for bit.
// And what the user reads when an element-wise operator cannot be computed.
#include <functional>

#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using ElementwiseErrorsTest = testing::Test;

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

TEST_F(ElementwiseErrorsTest, IntegerDivisionByZeroNamesTheElement) {
  for (const char* type : {"Div", "FloorDiv", "FloorMod"}) {
    std::vector<double> divisors(600, 1);
    divisors[555] = 0;
    const Status status =
        FailOf({.type = type,
                .inputs = {{"x1", FromDoubles(DataType::kInt32, {1}, {7})},
                           {"x2", FromDoubles(DataType::kInt32, {600}, divisors)}}});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("division by zero"), HasSubstr("element 555")));
  }
}

TEST_F(ElementwiseErrorsTest, BroadcastLargerThanMemoryCanCount) {
  const Tensor a = Tensor().WithType({kF32, {int64_t{1} << 40, 1}});
  const Tensor b = Tensor().WithType({kF32, {1, int64_t{1} << 40}});
  Result<std::vector<TensorType>> types =
      InferOp({.type = "Add", .inputs = {{"x1", a}, {"x2", b}}});
  EXPECT_EQ(types.status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace npumesh
