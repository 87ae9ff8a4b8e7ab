// Which tolerance applies, and what tolerance.json may say. What "close" accepts and refuses is
// tested with whole models (tests/models/tolerance_test.cc).
#include "launch/run/tolerance.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/launch/float_row.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ToleranceRule, HasThreeForms) {
  EXPECT_TRUE(ParseToleranceRule("close", "t")->close);
  EXPECT_EQ(ToText(*ParseToleranceRule("close", "t")), "close");
  EXPECT_FALSE(ParseToleranceRule("exact", "t")->close);
  EXPECT_EQ(ToText(*ParseToleranceRule("exact", "t")), "exact");
  const ToleranceRule rule = *ParseToleranceRule("1e-5,0.25", "t");
  EXPECT_EQ(rule.given.rtol, 1e-5);
  EXPECT_EQ(rule.given.atol, 0.25);
  EXPECT_EQ(ToText(rule), "rtol 1e-05 atol 0.25");
  for (const char* text : {"", "near", "1e-5", "1,2,3", "-1,0", "0,-1", "nan,0", "1e999,0", ","}) {
    const Status status = ParseToleranceRule(text, "--tolerance").status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_EQ(status.message(),
              fmt::format("--tolerance \"{}\": expected exact, close, or two numbers from 0 on: "
                          "RTOL,ATOL",
                          text));
  }
}

class ToleranceFile : public testing::Test {
 protected:
  void Put(const std::string& text) {
    std::ofstream(folder_.Path("tolerance.json"), std::ios::trunc) << text;
  }
  AppliedTolerance For(int index, const ToleranceOptions& options = {},
                       const Tensor& golden = Floats({1, 2, 3, 4})) {
    const auto plan = TolerancePlan::Make(options, folder_.path());
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? plan->For(index, {}, golden) : AppliedTolerance();
  }
  std::string Refusal() {
    const Status status = TolerancePlan::Make({}, folder_.path()).status();
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_THAT(std::string(status.message()), HasSubstr("/tolerance.json: "));
    return std::string(status.message());
  }
  TemporaryFolder folder_;
};

TEST_F(ToleranceFile, TheCommandLineStandsAboveTheFileAndTheFileAboveTheRule) {
  EXPECT_THAT(For(0).why, StartsWith("close: float32, 1 roundings"));
  Put(R"({"default": {"rtol": 0.5, "atol": 0.25}, "outputs": {"1": "exact", "2": "close"}})");
  EXPECT_EQ(For(0).value.rtol, 0.5);
  EXPECT_EQ(For(0).value.atol, 0.25);
  EXPECT_EQ(For(0).why, "given (tolerance.json)");
  EXPECT_EQ(For(1).why, "exact (tolerance.json)");
  EXPECT_EQ(For(1).value.atol, 0);
  EXPECT_THAT(For(2).why, StartsWith("close: "));
  ToleranceOptions options;
  options.rule = *ParseToleranceRule("1,2", "t");
  EXPECT_EQ(For(1, options).value.atol, 2);
  EXPECT_EQ(For(1, options).why, "given");
  EXPECT_EQ(For(0, {0.0, 0.0, {}}).value.rtol, 0);
}

TEST_F(ToleranceFile, ALoneNumberLeavesTheOtherToTheDtype) {
  EXPECT_EQ(For(0, {0.5, {}, {}}).value.atol, 1e-6);
  EXPECT_EQ(For(0, {{}, 0.5, {}}).value.rtol, 1e-5);
}

TEST_F(ToleranceFile, IntegersAreExactWhateverIsSaid) {
  Put(R"({"default": {"rtol": 1, "atol": 1}})");
  const Tensor ints = Tensor::FromVector<int32_t>({DataType::kInt32, {1}}, {1});
  EXPECT_EQ(For(0, {}, ints).why, "exact");
  EXPECT_EQ(For(0, {1.0, 1.0, {}}, ints).value.atol, 0);
}

TEST_F(ToleranceFile, ErrorsNameFileAndField) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\n\"default\": \"exact\"\n", "is not JSON: line 3"},
      {"[]", "expected a JSON object"},
      {R"({"rtol": 1})", "unknown key \"rtol\"; known: default, outputs"},
      {R"({"default": "near"})", "default: value \"near\": expected exact, close"},
      {R"({"default": {"rtol": -1}})", "default: rtol: expected a number from 0 on"},
      {R"({"default": {"rtol": "1"}})", "default: rtol: expected a number from 0 on"},
      {R"({"default": {"tol": 1}})", "default: unknown key \"tol\"; known: rtol, atol"},
      {R"({"default": 1e999})", "is not JSON: number overflow parsing '1e999'"},
      {R"({"outputs": []})", "outputs: expected an object"},
      {R"({"outputs": {"y": "exact"}})", "outputs: \"y\" is no number of an output"},
      {R"({"outputs": {"3": 7}})", "outputs: 3: expected \"exact\", \"close\" or an object"},
  };
  for (const auto& [text, expected] : cases) {
    Put(text);
    EXPECT_THAT(Refusal(), HasSubstr(expected)) << text;
  }
}

TEST(ScaleOf, IsTheLargestValueUnlessThatIsAnOutlier) {
  EXPECT_EQ(ScaleOf(Floats({1, -4, 2, 3})), 4);
  EXPECT_EQ(ScaleOf(Floats({0, 0, 0, -4})), 4);
  EXPECT_EQ(ScaleOf(Floats({0, 0})), 0);
  EXPECT_EQ(ScaleOf(Floats({1, 2, -3e38f, 2})), 256);  // 128 times the lower quartile
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ScaleOf(Floats({1, inf, -inf, std::numeric_limits<float>::quiet_NaN(), 2})), 2);
  EXPECT_EQ(ScaleOf(Tensor::FromVector<int32_t>({DataType::kInt32, {1}}, {9})), 0);
  EXPECT_EQ(ScaleOf(Tensor::Allocate({DataType::kFloat, {0}})), 0);
}

TEST(CloseTolerance, GrowsWithTheRootOfWhatLiesBehind) {
  const Tensor golden = Floats({1, 2, 3, 4});
  const double once = CloseTolerance({}, golden).value.rtol;
  EXPECT_EQ(once, 0x1p-24);
  // Three more operators and a sum of 12: 16 squares of the unit roundoff.
  RoundingPath rounding{15 * 0x1p-48, 3, 12, DataType::kFloat};
  const AppliedTolerance close = CloseTolerance(rounding, golden);
  EXPECT_EQ(close.value.rtol, 4 * once);
  EXPECT_NEAR(close.value.atol, 4 * 4 * once, 1e-20);
  EXPECT_EQ(close.why, "close: float32, 4 roundings, sums of 12, scale 4");
}

}  // namespace
}  // namespace npumesh
