#include "launch/bench/timing.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

namespace npumesh {
namespace {

TEST(Quantile, InterpolatesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(Quantile({3}, 0.99), 3);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 2, 3}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Quantile({5, 1, 3}, 0.5), 3);
  EXPECT_DOUBLE_EQ(Quantile({1, 2}, 1), 2);
}

TEST(GeometricMean, OfRatios) {
  EXPECT_DOUBLE_EQ(GeometricMean(std::vector<double>{0.5, 2}), 1);
}

TEST(Summarise, AnIterationTakesAsLongAsItsSlowestRank) {
  // Two rounds of two iterations.
  const std::vector<BenchTimes> ranks = {{{1000, 3000, 2000, 2000}, 6},
                                         {{2000, 1000, 8000, 2000}, 2}};
  const Timing timing = Summarise(ranks, 2);
  EXPECT_DOUBLE_EQ(timing.p50, 2.5);      // of 2, 3, 8, 2
  EXPECT_DOUBLE_EQ(timing.average, 3.5);  // of 4/2 and 10/2
  EXPECT_DOUBLE_EQ(timing.switches, 1);   // 8 in 2 times 4 calls
}

TEST(TimeRound, CallsWarmUpsAndIterations) {
  std::vector<int> calls;
  int meetings = 0;
  const Pace pace{3, 2, [&] {
                    ++meetings;
                    return Status();
                  }};
  const auto times = TimeRound(pace, [&](int i) {
    calls.push_back(i);
    return Status();
  });
  EXPECT_EQ(times->nanoseconds.size(), 3u);
  EXPECT_THAT(calls, testing::ElementsAre(0, 1, 0, 1, 2));
  EXPECT_EQ(meetings, 3);
}

TEST(TimeRound, CountsHowOftenTheProcessorIsGivenAway) {
  const auto times = TimeRound({4, 0, {}}, [](int) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status();
  });
  EXPECT_GE(times->switches, 4);
}

TEST(TimeRound, StopsAtTheFirstError) {
  int calls = 0;
  const auto times = TimeRound(
      {20, 0, {}}, [&](int) { return ++calls == 2 ? Error(Code::kTimeout, "late") : Status(); });
  EXPECT_EQ(times.status().message(), "late");
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace npumesh
