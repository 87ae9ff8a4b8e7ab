// What a tuner takes, and when it measures.
#include "graph/tuning/tuner.h"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/tuning/tuning_fixture.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TunerTest : public ::testing::Test {
 protected:
  TuningOptions Options() const {
    TuningOptions options;
    options.work_path = folder_.path();
    return options;
  }
  Tuner New() { return Tuner(Options(), testing::kSomeMachine, ways_.clock()); }

  // The kernel that a new tuner takes.
  std::unique_ptr<Kernel> Taken(Tuner& tuner, int64_t elements = 4) {
    auto kernel = tuner.Make(testing::StepOf(elements), ways_.MakerFor(tuner));
    EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
    return kernel.ok() ? *std::move(kernel) : nullptr;
  }
  std::string NameTaken(Tuner& tuner, int64_t elements = 4) {
    return testing::NameOf(*Taken(tuner, elements));
  }
  std::vector<std::string> Records() const {
    std::vector<std::string> names;
    const std::string folder = folder_.Path("npumesh_tuning");
    if (!std::filesystem::exists(folder)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      names.push_back(entry.path().string());
    }
    return names;
  }

  TemporaryFolder folder_;
  testing::Ways ways_{{{"a", 45.2}, {"b", 31}, {"c", 40}}};
};

TEST_F(TunerTest, TakesTheFastestAndSaysSo) {
  Tuner tuner = New();
  const std::unique_ptr<Kernel> kernel = Taken(tuner);
  EXPECT_EQ(testing::NameOf(*kernel), "b");
  EXPECT_EQ(kernel->choice().ToString(), "tuned: 31.0 us, against 45.2 us");
  EXPECT_EQ(tuner.stats().measured, 1);
  EXPECT_EQ(tuner.stats().improved, 1);
  EXPECT_EQ(tuner.stats().ToString(),
            "1 operators tuned, 0 found in records: 31.0 us, against 45.2 us");
  EXPECT_EQ(ways_.made, 3);
}

TEST_F(TunerTest, FindsWhatAnotherMeasured) {
  Tuner first = New();
  EXPECT_EQ(NameTaken(first), "b");
  ways_.made = 0;
  ways_.now = 0;
  Tuner second = New();
  EXPECT_EQ(NameTaken(second), "b");
  EXPECT_EQ(second.stats().measured, 0);
  EXPECT_EQ(second.stats().found, 1);
  EXPECT_EQ(ways_.made, 1);
  EXPECT_EQ(ways_.now, 0) << "a kernel ran";
  EXPECT_THAT(Records(), SizeIs(1));
}

TEST_F(TunerTest, TiesStayWithTheOrdinaryChoice) {
  ways_.costs = {{"a", 100}, {"b", 98}};
  Tuner tuner = New();
  const std::unique_ptr<Kernel> kernel = Taken(tuner);
  EXPECT_EQ(testing::NameOf(*kernel), "a");
  EXPECT_EQ(kernel->choice().ToString(), "tuned: nothing is faster than 100.0 us");
  EXPECT_EQ(tuner.stats().improved, 0);
  Tuner second = New();
  EXPECT_EQ(NameTaken(second), "a");
  EXPECT_EQ(second.stats().found, 1);
}

TEST_F(TunerTest, APreferenceThatObjectsIsNotTaken) {
  ways_.objecting = "b";
  Tuner tuner = New();
  EXPECT_EQ(NameTaken(tuner), "c");
}

TEST_F(TunerTest, WhatFailsIsNotTaken) {
  ways_.failing = "b";
  Tuner tuner = New();
  EXPECT_EQ(NameTaken(tuner), "c");
}

TEST_F(TunerTest, WhereTheOrdinaryKernelFailsNothingIsMeasured) {
  ways_.failing = "a";
  Tuner tuner = New();
  EXPECT_EQ(NameTaken(tuner), "a");
  EXPECT_EQ(tuner.stats(), TuningStats());
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(TunerTest, WithoutAChoiceNothingIsMeasured) {
  ways_.costs = {{"a", 10}};
  Tuner tuner = New();
  EXPECT_EQ(NameTaken(tuner), "a");
  EXPECT_EQ(ways_.made, 1);
  EXPECT_EQ(ways_.now, 0);
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(TunerTest, OutsideOfAMakerNothingIsPreferred) {
  Tuner tuner = New();
  EXPECT_EQ(NameTaken(tuner), "b");
  EXPECT_EQ(testing::NameOf(**ways_.MakerFor(tuner)()), "a");
}

TEST_F(TunerTest, KeysDifferWithAllThatMayDecide) {
  Tuner tuner = New();
  NameTaken(tuner, 4);
  NameTaken(tuner, 5);
  TunableStep other_type = testing::StepOf(4);
  other_type.inputs[0].dtype = DataType::kInt32;
  ASSERT_TRUE(tuner.Make(other_type, ways_.MakerFor(tuner)).ok());
  TunableStep constant = testing::StepOf(4);
  const Tensor weight = Tensor::Allocate(constant.inputs[0]);
  constant.constants[0] = &weight;
  ASSERT_TRUE(tuner.Make(constant, ways_.MakerFor(tuner)).ok());
  Tuner elsewhere(Options(), {"x86-64-v4", "Some CPU"}, ways_.clock());
  NameTaken(elsewhere, 4);
  Tuner other_cpu(Options(), {"x86-64-v3", "Another CPU"}, ways_.clock());
  NameTaken(other_cpu, 4);
  EXPECT_THAT(Records(), SizeIs(6));
  EXPECT_EQ(tuner.stats().measured, 4);
  // The name of a node decides nothing.
  TunableStep same = testing::StepOf(4);
  same.name = "way_2";
  ASSERT_TRUE(tuner.Make(same, ways_.MakerFor(tuner)).ok());
  EXPECT_EQ(tuner.stats().found, 1);
}

TEST_F(TunerTest, DamagedRecordsAreMeasuredAnewWithOneWarning) {
  Tuner first = New();
  NameTaken(first);
  ASSERT_THAT(Records(), SizeIs(1));
  const std::string path = Records()[0];
  std::ofstream(path) << "{\"format\": 1";
  testing::AdviceLog advice;
  Tuner second = New();
  EXPECT_EQ(NameTaken(second), "b");
  EXPECT_EQ(second.stats().measured, 1);
  EXPECT_THAT(advice.said(), ElementsAre("tuning: " + path +
                                         " is passed over, and measured anew: it is no JSON "
                                         "object"));
  Tuner third = New();
  NameTaken(third);
  EXPECT_EQ(third.stats().found, 1);
}

// A kernel that was taken out of the program, or one of a processor with other instructions.
TEST_F(TunerTest, AWinnerThatIsNotThereIsMeasuredAnew) {
  Tuner first = New();
  NameTaken(first);
  ways_.costs = {{"a", 45.2}, {"c", 40}};
  testing::AdviceLog advice;
  Tuner second = New();
  EXPECT_EQ(NameTaken(second), "c");
  EXPECT_EQ(second.stats().measured, 1);
  EXPECT_THAT(advice.said(), ElementsAre(HasSubstr("measured anew: here is no \"way: b\"")));
}

TEST_F(TunerTest, AFolderThatTakesNoFilesLeavesTheOrdinaryKernels) {
  std::ofstream(folder_.Path("npumesh_tuning")) << "a file";
  testing::AdviceLog advice;
  Tuner tuner = New();
  EXPECT_EQ(NameTaken(tuner, 4), "a");
  EXPECT_EQ(NameTaken(tuner, 5), "a");
  EXPECT_EQ(tuner.stats(), TuningStats());
  EXPECT_THAT(advice.said(), ElementsAre(HasSubstr("keep their ordinary kernels")));
}

// The whole budget is over at once: contests have their first rounds only, and no key is left out.
TEST_F(TunerTest, AfterTheWholeBudgetContestsAreShort) {
  TuningOptions options = Options();
  options.whole_budget = std::chrono::milliseconds(0);
  Tuner tuner(options, testing::kSomeMachine, ways_.clock());
  EXPECT_EQ(NameTaken(tuner), "b");
  // Warm-up and three rounds of all.
  EXPECT_EQ(ways_.now, 4 * (45'200 + 31'000 + 40'000));
}

TEST_F(TunerTest, OnlyWhatIsSelected) {
  TuningOptions options = Options();
  options.selection.types = {"Conv2D"};
  Tuner tuner(options, testing::kSomeMachine, ways_.clock());
  EXPECT_EQ(NameTaken(tuner), "a");
  options.selection.names = {"way_1"};
  Tuner other(options, testing::kSomeMachine, ways_.clock());
  EXPECT_EQ(NameTaken(other), "b");
}

// "outer" has a decision below it only where it is "deep"; deep and fast is the best, deep alone is
// not.
TEST_F(TunerTest, DecisionsBelowDecisions) {
  constexpr std::array<std::string_view, 2> kOuter = {"flat", "deep"}, kInner = {"slow", "fast"};
  Tuner tuner = New();
  const auto make = [&]() -> Result<std::unique_ptr<Kernel>> {
    std::string taken = TunedOption(&tuner, "outer", kOuter, "flat");
    int64_t cost = 5000;
    if (taken == "deep") {
      taken = TunedOption(&tuner, "inner", kInner, "slow");
      cost = taken == "fast" ? 3000 : 6000;
    }
    return std::unique_ptr<Kernel>(std::make_unique<testing::TimedKernel>(taken, &ways_.now, cost));
  };
  const auto kernel = tuner.Make(testing::StepOf(4), make);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(testing::NameOf(**kernel), "fast");
}

// A process that holds the lock and is gone, or stopped.
TEST_F(TunerTest, WaitsForAnotherOnlySoLong) {
  std::filesystem::create_directory(folder_.Path("npumesh_tuning"));
  auto lock = KernelLock::TryTake(folder_.Path("npumesh_tuning/tuning.lock"));
  ASSERT_TRUE(lock.ok() && *lock);
  TuningOptions options = Options();
  options.wait_limit = std::chrono::milliseconds(20);
  Tuner tuner(options, testing::kSomeMachine, ways_.clock());
  EXPECT_EQ(NameTaken(tuner), "b");
  EXPECT_EQ(tuner.stats().measured, 1);
}

// Ranks of a node: each key is measured once, and all have the same winner, although by their own
// clocks they would not.
TEST_F(TunerTest, RanksHaveTheSameWinner) {
  constexpr int kRanks = 4;
  constexpr int kKeys = 6;
  std::vector<std::vector<std::string>> taken(kRanks);
  std::vector<int> measured(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      testing::Ways ways{{{"a", 50}, {"b", rank % 2 == 0 ? 20 : 40}, {"c", 30}}};
      Tuner tuner(Options(), testing::kSomeMachine, ways.clock());
      for (int64_t key = 1; key <= kKeys; ++key) {
        const auto kernel = tuner.Make(testing::StepOf(key), ways.MakerFor(tuner));
        taken[static_cast<size_t>(rank)].push_back(kernel.ok() ? testing::NameOf(**kernel)
                                                               : kernel.status().ToString());
      }
      measured[static_cast<size_t>(rank)] = tuner.stats().measured;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::vector<std::string>& names : taken) EXPECT_EQ(names, taken[0]);
  EXPECT_EQ(measured[0] + measured[1] + measured[2] + measured[3], kKeys);
}

}  // namespace
}  // namespace npumesh
