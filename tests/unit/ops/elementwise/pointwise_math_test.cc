// The mathematics beyond the everyday operators.
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/unit/ops/elementwise/pointwise_cases.h"

namespace npumesh {
namespace {

// Of floats of all magnitudes, halves and their neighbours, zeros of both signs, infinities, NaN.
TEST(PointwiseMath, RoundsAsTheCLibraryToEveryBit) {
  std::vector<double> values = {0.0,
                                -0.0,
                                0x1p52,
                                -0x1p52,
                                0x1p52 - 0.5,
                                0x1p53,
                                1e300,
                                std::numeric_limits<double>::denorm_min(),
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
  for (double whole = 0; whole < 40; ++whole) {
    for (const double sign : {1.0, -1.0}) {
      const double half = sign * (whole + 0.5);
      values.insert(values.end(),
                    {half, std::nextafter(half, 0.0), std::nextafter(half, 1e9 * sign),
                     std::ldexp(half, 40), sign * std::ldexp(1.7, -int(whole))});
    }
  }
  std::vector<double> expected;
  for (const double value : values) expected.push_back(std::nearbyint(value));
  const Tensor x = Make(DataType::kDouble, {static_cast<int64_t>(values.size())}, values);
  for (const char* type : {"Rint", "Round"}) {
    const Tensor y = RunOne({.type = type, .inputs = {{"x", x}}});
    EXPECT_EQ(std::memcmp(y.data(), expected.data(), expected.size() * sizeof(double)), 0) << type;
  }
}

TEST(PointwiseMath, OneOperand) {
  ExpectMatches({
      {"Tan", {"x"}, [](const Operands& in) { return tanl(in[0]); }},
      {"Sinh", {"x"}, [](const Operands& in) { return (expl(in[0]) - expl(-in[0])) / 2; }},
      {"Cosh", {"x"}, [](const Operands& in) { return (expl(in[0]) + expl(-in[0])) / 2; }},
      {"Asin", {"x"}, [](const Operands& in) { return asinl(in[0]); }, -1.5, 1.5},
      {"Acos", {"x"}, [](const Operands& in) { return acosl(in[0]); }, -1.5, 1.5},
      {"Atan", {"x"}, [](const Operands& in) { return atan2l(in[0], 1); }, -40, 40},
      {"Asinh", {"x"}, [](const Operands& in) { return asinhl(in[0]); }, -40, 40},
      {"Acosh", {"x"}, [](const Operands& in) { return acoshl(in[0]); }, -2, 40},
      {"Atanh", {"x"}, [](const Operands& in) { return atanhl(in[0]); }, -1.25, 1.25},
      {"Inv", {"x"}, [](const Operands& in) { return 1 / in[0]; }},
      {"Erfc", {"x"}, [](const Operands& in) { return erfcl(in[0]); }},
      {"Rint", {"x"}, [](const Operands& in) { return rintl(in[0]); }},
      {"Logit",
       {"x"},
       [](const Operands& in) { return logl(in[0]) - log1pl(-in[0]); },
       0.125,
       0.875,
       {},
       1e-13},
  });
}

TEST(PointwiseMath, TwoAndMoreOperands) {
  ExpectMatches({
      {"SquaredDifference",
       {"x1", "x2"},
       [](const Operands& in) { return powl(in[0] - in[1], 2); }},
      {"Mod", {"x1", "x2"}, [](const Operands& in) { return fmodl(in[0], in[1]); }},
      {"TruncateMod", {"x1", "x2"}, [](const Operands& in) { return fmodl(in[0], in[1]); }},
      {"Atan2", {"x1", "x2"}, [](const Operands& in) { return atan2l(in[0], in[1]); }},
      {"Xlogy",
       {"x1", "x2"},
       [](const Operands& in) { return in[0] == 0 ? 0 : in[0] * logl(in[1]); },
       0,
       4},
      {"LogAddExp",
       {"x1", "x2"},
       [](const Operands& in) { return logl(expl(in[0]) + expl(in[1])); },
       -4,
       4,
       {},
       1e-12},
      {"Lerp",
       {"start", "end", "weight"},
       [](const Operands& in) { return in[0] + in[2] * (in[1] - in[0]); },
       1,
       2,
       {},
       1e-14},
      {"ClipByValueV2",
       {"x", "clip_value_min", "clip_value_max"},
       [](const Operands& in) { return fminl(fmaxl(in[0], in[1]), in[2]); }},
      {"ClipByValue",
       {"x", "clip_value_min", "clip_value_max"},
       [](const Operands& in) { return fmaxl(fminl(in[0], in[2]), in[1]); }},
      {"Axpy",
       {"x1", "x2"},
       [](const Operands& in) { return in[0] + 0.25L * in[1]; },
       0,
       4,
       {{"alpha", F(0.25f)}}},
      {"Adds", {"x"}, [](const Operands& in) { return in[0] + 1.5L; }, 0, 4, {{"value", F(1.5f)}}},
  });
}

TEST(PointwiseMath, Xlog1pyNamesItsPortsDifferently) {
  ExpectMatches({{"Xlog1py",
                  {"x", "y"},
                  [](const Operands& in) { return in[0] == 0 ? 0 : in[0] * log1pl(in[1]); },
                  0,
                  4}});
}

// erf of the result is the argument again.
TEST(PointwiseMath, ErfinvUndoesErf) {
  std::vector<double> values = {-1.5, -1, -0.9999999, -0.5, -1e-20, 0, 1e-7, 0.3, 0.99, 1, 2, NAN};
  const std::vector<double> y = ToDoubles(
      RunOne({.type = "Erfinv", .inputs = {{"input_x", FromDoubles(kF64, Shape({12}), values)}}}));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], -INFINITY);
  EXPECT_EQ(y[9], INFINITY);
  EXPECT_TRUE(std::isnan(y[10]) && std::isnan(y[11]));
  for (size_t i = 2; i < 9; ++i) {
    EXPECT_NEAR(static_cast<double>(erfl(y[i])), values[i], 1e-14 * std::fabs(values[i]));
  }
}

TEST(PointwiseMath, QuotientsByZero) {
  const Tensor a = FromDoubles(kF32, Shape({3}), {6, -7, 0});
  const Tensor b = FromDoubles(kF32, Shape({3}), {0, 2, 0});
  const auto run = [&](const std::string& type, const Tensor& x1, const Tensor& x2) {
    return ToDoubles(RunOne({.type = type, .inputs = {{"x1", x1}, {"x2", x2}}}));
  };
  EXPECT_EQ(run("DivNoNan", a, b), (std::vector<double>{0, -3.5, 0}));
  EXPECT_EQ(run("TruncateDiv", a, b)[1], -3);
  EXPECT_EQ(run("Xdivy", b, a)[1], 2 / -7.0f);
  EXPECT_EQ(run("Xdivy", b, a)[2], 0);
  const Tensor whole = Make<int32_t>(DataType::kInt32, {3}, {7, -7, 5});
  const Tensor divisor = Make<int32_t>(DataType::kInt32, {3}, {2, 2, 0});
  const Tensor two = Make<int32_t>(DataType::kInt32, {}, {2});
  EXPECT_EQ(run("Mod", whole, two), (std::vector<double>{1, -1, 1}));
  EXPECT_EQ(run("DivNoNan", whole, divisor), (std::vector<double>{3, -3, 0}));
  for (const char* type : {"Mod", "TruncateMod"}) {
    const Status status = FailOf({.type = type, .inputs = {{"x1", whole}, {"x2", divisor}}});
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("division by zero at element 2"))
        << type;
  }
  const Status fails = FailOf({.type = "TruncateDiv", .inputs = {{"x1", whole}, {"x2", divisor}}});
  EXPECT_THAT(std::string(fails.message()), testing::HasSubstr("division by zero at element 2"));
}

}  // namespace
}  // namespace npumesh
