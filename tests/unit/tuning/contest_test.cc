// Who wins a contest, and how long it lasts, by a clock that the kernels advance.
#include "graph/tuning/contest.h"

#include <gmock/gmock.h>

#include "tests/unit/tuning/tuning_fixture.h"

namespace npumesh {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class Contest : public ::testing::Test {
 protected:
  std::vector<ContestTime> Times(const std::vector<double>& costs_us, const ContestRules& rules,
                                 int failing = -1) {
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::vector<Kernel*> pointers;
    for (size_t i = 0; i < costs_us.size(); ++i) {
      kernels.push_back(std::make_unique<testing::TimedKernel>(
          std::to_string(i), &now_, static_cast<int64_t>(costs_us[i] * 1000),
          static_cast<int>(i) == failing));
      pointers.push_back(kernels.back().get());
    }
    auto operands = ContestOperands::Make(testing::StepOf(4), 1 << 20);
    return RunContest(pointers, *operands, rules, [this] { return now_; });
  }
  static std::vector<int> RunsOf(const std::vector<ContestTime>& times) {
    std::vector<int> runs;
    for (const ContestTime& time : times) runs.push_back(time.runs);
    return runs;
  }

  int64_t now_ = 0;
};

TEST_F(Contest, MediansAreThoseOfTheClock) {
  const std::vector<ContestTime> times = Times({45.2, 31, 60}, {});
  EXPECT_EQ(times[0].median_us, 45.2);
  EXPECT_EQ(times[1].median_us, 31);
  EXPECT_EQ(times[2].median_us, 60);
  EXPECT_THAT(RunsOf(times), Each(ContestRules().most_rounds));
  EXPECT_EQ(WinnerOf(times), 1u);
}

// A round takes 199 ms, far more than the budget.
TEST_F(Contest, EndsWithItsBudgetButNotBeforeTheFirstRounds) {
  EXPECT_THAT(RunsOf(Times({100'000, 99'000}, {.budget_ns = 1'000'000})), ElementsAre(3, 3));
  now_ = 0;
  // 0.2 ms each round after one for warm-up.
  EXPECT_THAT(RunsOf(Times({100, 100}, {.budget_ns = 2'000'000})), ElementsAre(9, 9));
}

TEST_F(Contest, SlowOnesLeaveAfterTheFirstRound) {
  EXPECT_THAT(RunsOf(Times({10, 25, 20}, {.most_rounds = 7})), ElementsAre(7, 1, 7));
  // The ordinary one stays: the others are compared with it.
  EXPECT_THAT(RunsOf(Times({50, 10}, {.most_rounds = 7})), ElementsAre(7, 7));
}

TEST_F(Contest, WhatIsHardlyFasterDoesNotWin) {
  EXPECT_EQ(WinnerOf(Times({100, 98}, {})), 0u);
  EXPECT_EQ(WinnerOf(Times({100, 96}, {})), 1u);
  EXPECT_EQ(WinnerOf(Times({100, 100, 100}, {})), 0u);
  EXPECT_EQ(WinnerOf(Times({100, 96, 90}, {})), 2u);
}

TEST_F(Contest, WhatFailsDoesNotWin) {
  const std::vector<ContestTime> times = Times({100, 10, 90}, {}, 1);
  EXPECT_EQ(times[1].failure, "\"1\" fails");
  EXPECT_EQ(times[1].runs, 0);
  EXPECT_EQ(WinnerOf(times), 2u);
}

TEST_F(Contest, OperandsAreTheSameEachTime) {
  TunableStep step;
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                               DataType::kInt8, DataType::kInt64, DataType::kDouble}) {
    step.inputs.push_back({dtype, Shape({3, 5})});
  }
  const Tensor weight = Tensor::FromVector<float>({DataType::kFloat, Shape({2})}, {1, 2});
  step.inputs.push_back(weight.type());
  step.inputs.emplace_back();
  step.constants.resize(step.inputs.size());
  step.constants[6] = &weight;
  step.outputs = {{DataType::kFloat, Shape({7})}};
  const testing::TimedKernel kernel("", &now_, 1);
  auto a = ContestOperands::Make(step, 1 << 20), b = ContestOperands::Make(step, 1 << 20);
  const KernelArgs first = a->ArgsFor(kernel), second = b->ArgsFor(kernel);
  for (size_t slot = 0; slot < 6; ++slot) {
    const uint64_t bytes = step.inputs[slot].bytes();
    EXPECT_EQ(std::memcmp(first.in[slot], second.in[slot], bytes), 0) << slot;
  }
  const auto* floats = static_cast<const float*>(first.in[0]);
  EXPECT_NE(floats[0], floats[1]);
  const auto* positions = static_cast<const int64_t*>(first.in[4]);
  EXPECT_EQ(std::count(positions, positions + 15, 0), 15);
  EXPECT_EQ(first.in[6], weight.data());
  EXPECT_EQ(first.in[7], nullptr);
}

TEST_F(Contest, OperandsThatAreTooLarge) {
  // Input and output have 32 bytes each.
  EXPECT_TRUE(ContestOperands::Make(testing::StepOf(4), 64));
  EXPECT_FALSE(ContestOperands::Make(testing::StepOf(4), 63));
}

}  // namespace
}  // namespace npumesh
