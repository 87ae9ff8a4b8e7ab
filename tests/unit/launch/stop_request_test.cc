#include "launch/run/stop_request.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <thread>

#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

using std::chrono::seconds;

// `body` in a world of one rank.
void InWorld(const std::function<void(World&)>& body) {
  const auto statuses = RunRanks(1, TestEnv(), [&](World& world) {
    body(world);
    return Status();
  });
  ExpectAllOk(statuses);
}

TEST(StopRequest, NothingHappensUnasked) {
  InWorld([](World& world) {
    const StopRequest stop(world, seconds(0));
    EXPECT_TRUE(stop.Before(0, 10).ok());
    EXPECT_TRUE(stop.After(Status()).ok());
    EXPECT_EQ(stop.After(Error(Code::kInternal, "x")).exit_code, 4);
  });
}

TEST(StopRequest, SignalsStopBeforeTheNextStep) {
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), {SIGTERM, 143}, {SIGUSR1, 130}}) {
    InWorld([&, asked = signal, expected = code](World& world) {
      const StopRequest stop(world, seconds(0));
      raise(asked);
      const Outcome outcome = stop.Before(17, 1000);
      EXPECT_EQ(outcome.exit_code, expected);
      EXPECT_EQ(outcome.message, "stopped at step 17 of 1000");
      EXPECT_FALSE(outcome.consequence);
    });
  }
}

TEST(StopRequest, ARequestDoesNotOutliveItsRun) {
  InWorld([](World& world) {
    {
      const StopRequest stop(world, seconds(0));
      raise(SIGINT);
    }
    const StopRequest again(world, seconds(0));
    EXPECT_TRUE(again.Before(0, 1).ok());
  });
}

int heard = 0;

// MPICH hears SIGUSR1, which its mpiexec sends to a rank when another has ended.
TEST(StopRequest, WhoHeardASignalBeforeHearsItAgain) {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) {
    InWorld([&](World& world) {
      const auto before = signal(number, [](int which) { heard = which; });
      heard = 0;
      {
        const StopRequest stop(world, seconds(0));
        raise(number);
        EXPECT_FALSE(stop.Before(0, 1).ok());
        EXPECT_EQ(heard, 0);
      }
      raise(number);
      EXPECT_EQ(heard, number);
      signal(number, before);
    });
  }
}

TEST(StopRequest, TheTimeStopsStepsAndExplainsWhatFailed) {
  InWorld([](World& world) {
    const StopRequest stop(world, seconds(1));
    EXPECT_TRUE(stop.Before(0, 5).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    EXPECT_EQ(stop.Before(3, 5).exit_code, 4);
    EXPECT_EQ(stop.Before(3, 5).message,
              "the run was not done after 1 s (--timeout): stopped at step 3 of 5");
    const Outcome failed = stop.After(Error(Code::kPeerLost, "rank 1 failed"));
    EXPECT_EQ(failed.exit_code, 4);
    EXPECT_EQ(failed.message, "the run was not done after 1 s (--timeout): rank 1 failed");
    EXPECT_FALSE(failed.consequence);
    EXPECT_TRUE(stop.After(Status()).ok()) << "the last step may be done late";
  });
}

// Ranks that wait for one that does not come are told by the board. One of them may be told first
// and be gone when the other looks: what both say of it is the time.
TEST(StopRequest, TheTimeEndsAWait) {
  const auto statuses = RunRanks(2, TestEnv(), [](World& world) -> Status {
    const StopRequest stop(world, seconds(1));
    const int peer = 1 - world.rank();
    for (int i = 0; i < 200; ++i) {
      const Status told = world.board().CheckPeer(peer);
      if (!told.ok()) return Error(told.code(), "{}", stop.After(told).message);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return Status();
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kPeerLost);
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr("the run was not done after 1 s (--timeout)"));
  }
}

}  // namespace
}  // namespace npumesh
