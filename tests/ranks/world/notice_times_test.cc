#include "runtime/world/notice_times.h"

#include <gmock/gmock.h>

#include "runtime/base/env/env.h"

namespace npumesh {
namespace {

using std::chrono::seconds;

// Whole seconds at which a wait that is asked every second says something.
std::vector<int> NoticesOf(int soft, int until) {
  NoticeTimes times{seconds(soft)};
  std::vector<int> due;
  for (int second = 0; second <= until; ++second) {
    if (times.Due(seconds(second))) due.push_back(second);
  }
  return due;
}

TEST(NoticeTimes, AfterTheSoftLimitAndThenMoreAndMoreSeldom) {
  EXPECT_THAT(NoticesOf(10, 1000), testing::ElementsAre(10, 30, 60, 120, 300, 600, 900));
  EXPECT_THAT(NoticesOf(1, 70), testing::ElementsAre(1, 30, 60));
  EXPECT_THAT(NoticesOf(45, 150), testing::ElementsAre(45, 60, 120));
  EXPECT_THAT(NoticesOf(700, 1000), testing::ElementsAre(700, 900));
}

TEST(NoticeTimes, WhatWasMissedIsSaidOnce) {
  NoticeTimes times{seconds(10)};
  EXPECT_TRUE(times.Due(seconds(200)));
  EXPECT_FALSE(times.Due(seconds(299)));
  EXPECT_TRUE(times.Due(seconds(300)));
}

TEST(NoticeTimes, SaysWhenAWaitGivesUp) {
  EXPECT_THAT(GivesUpText(seconds(1836), seconds(10)),
              testing::MatchesRegex("gives up at ..:..:.., 1836 s after it began"));
  EXPECT_EQ(GivesUpText(kNoTimeout, seconds(10)), "never gives up (HCCL_EXEC_TIMEOUT=0)");
}

}  // namespace
}  // namespace npumesh
