// A rank is seen from outside, through the system's list of processes; here its process is this
// one.
#include "runtime/world/rank_window.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <barrier>
#include <limits>
#include <map>

#include "runtime/world/loop_line.h"
#include "runtime/world/step_line.h"
#include "tests/ranks/run_ranks.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(RankWindow, ShowsEachRankOfAProcess) {
  constexpr int kRanks = 3;
  std::barrier all(kRanks);
  const auto body = [&](World& world) -> Status {
    all.arrive_and_wait();  // a failure below would end the start of a rank that is late
    StepLine& steps = StepLine::Of(world);
    LoopLine loop(world);
    PositionLine* const group = world.board().ClaimPosition();
    group->Open(77, "tp", 1);
    if (world.rank() == 0) steps.Begin(3, "decoder");
    if (world.rank() == 0) loop.Turn(5, "while", SteadyClock::now());
    if (world.rank() == 1) {
      steps.Begin(4, "decoder");
      steps.End();
      group->Enter(9, 2, "attn", 2);
    }
    if (world.rank() == 2) world.board().PublishFailure(Error(Code::kIo, "a full disk"));
    all.arrive_and_wait();
    if (world.rank() == 0) {
      std::map<int, RankGlance> seen;
      for (const RankWindow& window : RankWindow::Open(getpid())) {
        EXPECT_EQ(window.world_size(), kRanks);
        EXPECT_THAT(window.boards(), SizeIs(kRanks));
        seen[window.rank()] = window.Look();
      }
      EXPECT_THAT(seen, SizeIs(kRanks));
      EXPECT_TRUE(seen[0].step && seen[0].step->active());
      EXPECT_EQ(seen[0].step->call, 3u);
      EXPECT_EQ(seen[0].step->node, "decoder");
      EXPECT_THAT(seen[0].loops, SizeIs(1));
      EXPECT_TRUE(seen[1].step && !seen[1].step->active());
      EXPECT_EQ(seen[1].step->call, 4u);
      EXPECT_FALSE(seen[2].step.has_value());
      for (auto& [rank, glance] : seen) {
        EXPECT_TRUE(glance.started);
        EXPECT_THAT(glance.sight.positions, SizeIs(1)) << "rank " << rank;
        EXPECT_EQ(glance.sight.positions[0].group_name, "tp");
      }
      EXPECT_EQ(seen[1].sight.positions[0].call, 9u);
      EXPECT_TRUE(seen[1].sight.lost.ok());
      EXPECT_THAT(std::string(seen[2].sight.lost.message()), HasSubstr("a full disk"));
    }
    all.arrive_and_wait();
    return Status();
  };
  RunRanks(kRanks, TestEnv(), body);
}

TEST(RankWindow, OtherProcessesHaveNone) {
  EXPECT_THAT(RankWindow::Open(getpid()), IsEmpty());
  EXPECT_THAT(RankWindow::Open(std::numeric_limits<int>::max()), IsEmpty());
}

}  // namespace
}  // namespace npumesh
