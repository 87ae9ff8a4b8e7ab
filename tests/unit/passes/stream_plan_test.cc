// Which step waits for which collective, and that no step touches memory a collective still uses.
#include "graph/passes/schedule/stream_plan.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace npumesh {
namespace {

using testing::ElementsAre;

constexpr auto kCompute = StepPlace::kCompute;
constexpr auto kBeside = StepPlace::kBeside;
constexpr auto kAlone = StepPlace::kAlone;

PlanStep Step(std::vector<int> reads, std::vector<int> writes) {
  PlanStep step;
  step.reads = std::move(reads);
  step.writes = std::move(writes);
  return step;
}

std::vector<PlanValue> Values(size_t count) {
  PlanValue value;
  value.bytes = 512;
  return std::vector<PlanValue>(count, value);
}

TEST(StreamPlanTest, TheFirstReaderWaits) {
  std::vector<PlanStep> steps = {Step({}, {0}), Step({0}, {1}), Step({0}, {2}), Step({1, 2}, {3}),
                                 Step({1, 3}, {4})};
  EXPECT_THAT(PlanWaits(Values(5), {kCompute, kBeside, kCompute, kCompute, kCompute}, steps),
              ElementsAre(-1, -1, -1, 1, -1));
  EXPECT_EQ(steps[1].done_by, 3);
}

TEST(StreamPlanTest, AWriterWaitsForReaders) {
  std::vector<PlanValue> values = Values(3);
  values[2].same_as = 0;  // written in place
  std::vector<PlanStep> steps = {Step({}, {0}), Step({0}, {1}), Step({0}, {2})};
  EXPECT_THAT(PlanWaits(values, {kCompute, kBeside, kCompute}, steps), ElementsAre(-1, -1, 1));
  // The same without an output that shows it.
  steps = {Step({}, {0}), Step({0}, {1}), Step({0}, {})};
  steps[2].updates = {0};
  EXPECT_THAT(PlanWaits(Values(2), {kCompute, kBeside, kCompute}, steps), ElementsAre(-1, -1, 1));
}

TEST(StreamPlanTest, CollectivesFollowEachOtherWithoutWaiting) {
  std::vector<PlanStep> steps = {Step({}, {0}), Step({0}, {1}), Step({1}, {2}), Step({1}, {3})};
  EXPECT_THAT(PlanWaits(Values(4), {kCompute, kBeside, kBeside, kCompute}, steps),
              ElementsAre(-1, -1, -1, 1));
  EXPECT_EQ(steps[1].done_by, 3);
  EXPECT_EQ(steps[2].done_by, 4);
}

TEST(StreamPlanTest, AloneWaitsForAllThatWereLaunched) {
  std::vector<PlanStep> steps = {Step({}, {0}), Step({}, {1}), Step({}, {2}), Step({}, {3})};
  EXPECT_THAT(PlanWaits(Values(4), {kBeside, kBeside, kAlone, kAlone}, steps),
              ElementsAre(-1, -1, 1, -1));
}

// Random programs with views and collectives: while a collective is under way, no step writes into
// bytes that it uses, and none reads what it writes; by address, as the memory plan has placed
// them.
TEST(StreamPlanTest, RandomProgramsNeverTouchWhatACollectiveUses) {
  size_t overlaps = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
    std::vector<PlanValue> values;
    std::vector<PlanStep> steps;
    std::vector<StepPlace> places;
    for (int i = 0; i < 40; ++i) {
      PlanStep step;
      for (size_t r = 0; !values.empty() && r < 1 + below(2); ++r) {
        step.reads.push_back(static_cast<int>(below(values.size())));
      }
      PlanValue value;
      value.bytes = 512 * (1 + below(4));
      const StepPlace place = below(3) == 0 ? kBeside : below(8) == 0 ? kAlone : kCompute;
      if (place == kCompute && !step.reads.empty() && below(4) == 0) {
        value.same_as = step.reads[0];
        value.bytes = values[static_cast<size_t>(step.reads[0])].bytes;
      } else if (place == kCompute) {
        step.may_take_over = step.reads;
      }
      value.output = below(10) == 0;
      step.writes.push_back(static_cast<int>(values.size()));
      values.push_back(value);
      steps.push_back(step);
      places.push_back(place);
    }
    const std::vector<int> waits = PlanWaits(values, places, steps);
    const MemoryPlan plan = PlanMemory(values, steps);
    const auto hit = [&](const std::vector<int>& a, const std::vector<int>& b) {
      for (const int x : a) {
        for (const int y : b) {
          const auto i = static_cast<size_t>(x);
          const auto j = static_cast<size_t>(y);
          if (plan.offsets[i] < plan.offsets[j] + values[j].bytes &&
              plan.offsets[j] < plan.offsets[i] + values[i].bytes) {
            return true;
          }
        }
      }
      return false;
    };
    std::set<size_t> running;
    for (size_t i = 0; i < steps.size(); ++i) {
      std::erase_if(running, [&](size_t j) { return static_cast<int>(j) <= waits[i]; });
      for (const size_t j : running) {
        ASSERT_GT(steps[j].done_by, static_cast<int>(i));
        if (places[i] == kBeside) continue;  // runs behind it
        ASSERT_EQ(places[i], kCompute);
        ++overlaps;
        ASSERT_FALSE(hit(steps[i].writes, steps[j].writes)) << "seed " << seed;
        ASSERT_FALSE(hit(steps[i].writes, steps[j].reads)) << "seed " << seed;
        ASSERT_FALSE(hit(steps[i].reads, steps[j].writes)) << "seed " << seed;
      }
      if (places[i] == kBeside) running.insert(i);
    }
  }
  EXPECT_GT(overlaps, 1000u);
}

}  // namespace
}  // namespace npumesh
