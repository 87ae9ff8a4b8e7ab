// What is said of loops that last.
#include "graph/session/loop_notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

// What is logged while `body` runs on one rank whose soft limit is a second.
std::string Log(const std::function<void(LoopNotices&)>& body) {
  Env env = SmallEnv();
  env.soft_timeout = std::chrono::seconds(1);
  testing::internal::CaptureStderr();
  const std::vector<Status> statuses = RunRanks(1, env, [&](World& world) {
    LoopNotices notices(world);
    body(notices);
    return Status();
  });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  return log;
}

void PassTheSoftLimit() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
}

TEST(LoopNotices, ALoopThatLastsIsToldOnceWithItsTurn) {
  const std::string log = Log([](LoopNotices& notices) {
    notices.Begin("decode");
    notices.Turn(1);
    PassTheSoftLimit();
    notices.Turn(2);
    notices.Turn(3);
    notices.End();
  });
  EXPECT_THAT(log, HasSubstr("loop \"decode\" has run for 1 s and begins turn 2"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST(LoopNotices, TimeBetweenLoopsDoesNotCount) {
  const std::string log = Log([](LoopNotices& notices) {
    for (int i = 0; i < 2; ++i) {
      notices.Begin("decode");
      notices.Turn(1);
      notices.End();
      if (i == 0) PassTheSoftLimit();
    }
  });
  EXPECT_EQ(log, "");
}

TEST(LoopNotices, LoopsNest) {
  const std::string log = Log([](LoopNotices& notices) {
    notices.Begin("outer");
    notices.Turn(1);
    notices.Begin("never entered");
    notices.End();
    PassTheSoftLimit();
    notices.Begin("inner");
    notices.Turn(1);
    notices.End();
    notices.Turn(2);
    notices.End();
  });
  EXPECT_THAT(log, HasSubstr("loop \"outer\" has run for 1 s and begins turn 2"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

}  // namespace
}  // namespace npumesh
