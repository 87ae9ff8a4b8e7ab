#include "collectives/contract/wait_graph.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(WaitGraph, WhoArrivesWaitsForThoseThatHaveNotEntered) {
  EXPECT_THAT(WaitsAmong({{0, {{1, 5, Phase::kArriving}}},
                          {1, {{1, 4, Phase::kOutside}}},
                          {2, {{1, 5, Phase::kArriving}}},
                          {3, {{1, 4, Phase::kDeparting}}}}),
              UnorderedElementsAre(Wait{0, 1, 1}, Wait{0, 3, 1}, Wait{2, 1, 1}, Wait{2, 3, 1}));
}

TEST(WaitGraph, WhoDepartsWaitsForThoseThatHaveNotDoneTheirPart) {
  EXPECT_THAT(WaitsAmong({{0, {{1, 5, Phase::kDeparting}}},
                          {1, {{1, 5, Phase::kRunning}}},
                          {2, {{1, 5, Phase::kDeparting}}},
                          {3, {{1, 5, Phase::kOutside}}},
                          {4, {{1, 6, Phase::kArriving}}}}),
              UnorderedElementsAre(Wait{0, 1, 1}, Wait{2, 1, 1}, Wait{4, 0, 1}, Wait{4, 1, 1},
                                   Wait{4, 2, 1}, Wait{4, 3, 1}));
}

TEST(WaitGraph, GroupsAreApart) {
  EXPECT_THAT(WaitsAmong({{0, {{1, 5, Phase::kArriving}}}, {1, {{2, 4, Phase::kOutside}}}}),
              IsEmpty());
}

TEST(WaitGraph, PrefersTheCircleThroughTheRankItself) {
  const std::vector<Wait> waits = {{0, 1, 1}, {1, 2, 1}, {2, 1, 1}, {2, 0, 1}};
  EXPECT_THAT(CircleFrom(0, waits), ElementsAre(0, 1, 2));
  EXPECT_THAT(CircleFrom(1, waits), ElementsAre(1, 2));
  EXPECT_THAT(CircleFrom(3, waits), IsEmpty());
  EXPECT_THAT(CircleFrom(0, {{0, 1, 1}, {1, 2, 1}, {2, 1, 1}}), ElementsAre(1, 2));
  EXPECT_THAT(CircleFrom(0, {{0, 1, 1}, {0, 2, 1}, {1, 2, 1}}), IsEmpty());
}

TEST(WaitGraph, RootsAreWaitedForAndDoNotWait) {
  EXPECT_THAT(Roots({{0, 1, 1}, {1, 2, 1}, {3, 2, 1}, {3, 4, 1}}), ElementsAre(2, 4));
  EXPECT_THAT(Roots({{0, 1, 1}, {1, 0, 1}}), IsEmpty());
}

}  // namespace
}  // namespace npumesh
