#include "launch/dump/job_dump.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DumpStep Step(int rank, std::optional<uint64_t> index, const std::string& time = "",
              const std::string& model = "") {
  DumpStep step;
  step.rank = rank;
  step.index = index;
  step.time = time;
  step.model = model;
  return step;
}

std::vector<std::string> Names(const Result<std::vector<StepPair>>& pairs) {
  std::vector<std::string> names;
  for (const StepPair& pair : *pairs) {
    names.push_back(fmt::format("{}.{}-{}.{}", pair.mine.rank, pair.mine.index.value_or(99),
                                pair.golden.rank, pair.golden.index.value_or(99)));
  }
  return names;
}

TEST(PairSteps, ByRankAndStep) {
  const std::vector<DumpStep> job = {Step(0, 0), Step(0, 1), Step(1, 0), Step(1, 1)};
  EXPECT_THAT(Names(PairSteps(job, job, {})),
              ElementsAre("0.0-0.0", "1.0-1.0", "0.1-0.1", "1.1-1.1"));
  EXPECT_THAT(Names(PairSteps(job, job, {.step = 1})), ElementsAre("0.1-0.1", "1.1-1.1"));
  EXPECT_THAT(Names(PairSteps(job, job, {.ranks = std::pair(0, 1)})),
              ElementsAre("0.0-1.0", "0.1-1.1"));
}

TEST(PairSteps, OneGoldenServesAll) {
  const std::vector<DumpStep> job = {Step(0, 0), Step(0, 1), Step(1, 0)};
  const std::vector<DumpStep> golden = {Step(0, std::nullopt)};
  EXPECT_THAT(Names(PairSteps(job, golden, {})), ElementsAre("0.0-0.99", "1.0-0.99", "0.1-0.99"));
}

TEST(PairSteps, NothingFits) {
  const std::vector<DumpStep> mine = {Step(0, 0), Step(1, 0)};
  const std::vector<DumpStep> golden = {Step(2, 0), Step(3, 0)};
  EXPECT_THAT(PairSteps(mine, golden, {}).status().message(),
              HasSubstr("ranks 0,1 with steps 0 on one side, and ranks 2,3"));
  EXPECT_FALSE(PairSteps(mine, mine, {.step = 7}).ok());
}

TEST(LatestSteps, TakesTheLastRunAndTheLargestModel) {
  const std::vector<DumpStep> latest =
      LatestSteps({Step(0, 0, "20240101000000", "m"), Step(0, 0, "20240102000000", "m"),
                   Step(0, 1, "20240102000000", "m"), Step(0, 0, "20240102000000", "other"),
                   Step(1, 0, "20240101000000", "m")});
  ASSERT_EQ(latest.size(), 3u);
  EXPECT_EQ(latest[0].time, "20240102000000");
  EXPECT_EQ(latest[0].model, "m");
  EXPECT_EQ(latest[2].rank, 1);
}

TEST(JobDump, RanksAndSteps) {
  std::vector<DumpStep> steps = {Step(0, std::nullopt)};
  EXPECT_EQ(RanksOf(steps), 1);
  EXPECT_THAT(StepNumbers(steps), ElementsAre(0));
  steps.push_back(Step(2, 5));
  EXPECT_EQ(RanksOf(steps), 3);
  steps[0].world_size = 8;
  EXPECT_EQ(RanksOf(steps), 8);
  EXPECT_THAT(StepNumbers(steps), ElementsAre(0, 5));
}

}  // namespace
}  // namespace npumesh
