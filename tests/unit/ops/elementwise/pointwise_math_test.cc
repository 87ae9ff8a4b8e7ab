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

TEST(PointwiseMath, Rounding) {
  const Tensor x = FromDoubles(kF32, Shape({6}), {-2.5, -1.5, -0.4, 0.5, 1.5, 12.25});
  const auto run = [&](const std::string& type, const std::string& port, Attrs attrs = {}) {
    return ToDoubles(RunOne({.type = type, .inputs = {{port, x}}, .attrs = attrs}));
  };
  EXPECT_EQ(run("Round", "x"), (std::vector<double>{-2, -2, -0.0, 0, 2, 12}));
  EXPECT_EQ(run("Trunc", "input_x"), (std::vector<double>{-2, -1, -0.0, 0, 1, 12}));
  EXPECT_EQ(run("Round", "x", {{"decimals", AttrValue::Int(-1)}}),
            (std::vector<double>{-0.0, -0.0, -0.0, 0, 0, 10}));
  const Tensor decimal = FromDoubles(kF64, Shape({2}), {0.125, 2.675});
  EXPECT_EQ(ToDoubles(RunOne({.type = "Round",
                              .inputs = {{"x", decimal}},
                              .attrs = {{"decimals", AttrValue::Int(1)}}})),
            (std::vector<double>{0.1, 2.7}));
  const Tensor whole = Make<int64_t>(DataType::kInt64, {2}, {INT64_MAX, -7});
  EXPECT_TRUE(SameBytes(RunOne({.type = "Round", .inputs = {{"x", whole}}}), whole));
}

TEST(PointwiseMath, Predicates) {
  for (const DataType dtype : kReals) {
    const Tensor x = FromDoubles(dtype, Shape({5}), {0, NAN, INFINITY, -INFINITY, -3});
    const auto run = [&](const std::string& type) {
      const Tensor y = RunOne({.type = type, .inputs = {{"x", x}}});
      EXPECT_EQ(y.dtype(), kBool);
      return ValuesOf<uint8_t>(y);
    };
    EXPECT_EQ(run("IsNan"), (std::vector<uint8_t>{0, 1, 0, 0, 0}));
    EXPECT_EQ(run("IsInf"), (std::vector<uint8_t>{0, 0, 1, 1, 0}));
    EXPECT_EQ(run("IsFinite"), (std::vector<uint8_t>{1, 0, 0, 0, 1}));
  }
  const Tensor whole = Make<int32_t>(DataType::kInt32, {2}, {1, 2});
  EXPECT_EQ(ValuesOf<uint8_t>(RunOne({.type = "IsFinite", .inputs = {{"x", whole}}})),
            (std::vector<uint8_t>{1, 1}));
}

TEST(PointwiseMath, IsCloseCountsFromTheSecondOperand) {
  const Tensor a = FromDoubles(kF64, Shape({5}), {100, 101.1, NAN, INFINITY, INFINITY});
  const Tensor b = FromDoubles(kF64, Shape({5}), {101, 100, NAN, INFINITY, 1});
  const auto run = [&](bool equal_nan) {
    return ValuesOf<uint8_t>(
        RunOne({.type = "IsClose",
                .inputs = {{"x1", a}, {"x2", b}},
                .attrs = {{"rtol", F(0.01f)}, {"equal_nan", AttrValue::Bool(equal_nan)}}}));
  };
  EXPECT_EQ(run(false), (std::vector<uint8_t>{1, 0, 0, 1, 0}));
  EXPECT_EQ(run(true), (std::vector<uint8_t>{1, 0, 1, 1, 0}));
}

TEST(PointwiseMath, NanToNum) {
  const Tensor x = FromDoubles(kF16, Shape({4}), {NAN, INFINITY, -INFINITY, 2});
  EXPECT_EQ(ToDoubles(RunOne({.type = "NanToNum",
                              .inputs = {{"x", x}},
                              .attrs = {{"nan", F(1)}, {"posinf", F(7)}, {"neginf", F(-7)}}})),
            (std::vector<double>{1, 7, -7, 2}));
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

TEST(PointwiseMath, SumsOfScaledOperands) {
  const Tensor a = Make<int8_t>(DataType::kInt8, {3}, {100, -3, 1});
  const Tensor b = Make<int8_t>(DataType::kInt8, {3}, {20, 5, -1});
  const Tensor two = Make<int8_t>(DataType::kInt8, {}, {2});
  const auto run = [&](const std::string& type, std::vector<OpInput> inputs) {
    return ValuesOf<int8_t>(RunOne({.type = type, .inputs = std::move(inputs)}));
  };
  EXPECT_EQ(run("AxpyV2", {{"x1", a}, {"x2", b}, {"alpha", two}}),
            (std::vector<int8_t>{-116, 7, -1}));
  EXPECT_EQ(run("Sxpy", {{"x1", a}, {"x2", b}}), (std::vector<int8_t>{80, -8, 2}));
  EXPECT_EQ(run("Addcmul", {{"input_data", a}, {"x1", b}, {"x2", b}, {"value", two}}),
            (std::vector<int8_t>{static_cast<int8_t>(100 + 800 - 1024 + 256 - 256), 47, 3}));
  EXPECT_EQ(run("AddN", {{"x0", a}, {"x1", b}, {"x2", b}}), (std::vector<int8_t>{-116, 7, -1}));
  const Tensor x = FromDoubles(kF32, Shape({2}), {1, 2});
  const Tensor four = FromDoubles(kF32, Shape({1}), {4});
  EXPECT_EQ(ToDoubles(RunOne({.type = "Addcdiv",
                              .inputs = {{"input_data", x},
                                         {"x1", x},
                                         {"x2", four},
                                         {"value", FromDoubles(kF32, {}, {8})}}})),
            (std::vector<double>{3, 6}));
}

TEST(PointwiseMath, ClipsUnsignedNumbersOfFullWidth) {
  const Tensor x = Make<uint64_t>(DataType::kUint64, {2}, {UINT64_MAX, 3});
  const Tensor low = Make<uint64_t>(DataType::kUint64, {}, {5});
  const Tensor high = Make<uint64_t>(DataType::kUint64, {}, {UINT64_MAX - 1});
  EXPECT_EQ(ValuesOf<uint64_t>(
                RunOne({.type = "ClipByValueV2",
                        .inputs = {{"x", x}, {"clip_value_min", low}, {"clip_value_max", high}}})),
            (std::vector<uint64_t>{UINT64_MAX - 1, 5}));
}

}  // namespace
}  // namespace npumesh
