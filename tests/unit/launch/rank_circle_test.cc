#include "launch/ranks/rank_circle.h"

#include <gtest/gtest.h>

#include "launch/ranks/agreement.h"

namespace npumesh {
namespace {

const Outcome kFine;
const Outcome kMine{3, "no such file", false};
const Outcome kOther{4, "disk is full", false};
const Outcome kConsequence{5, "rank 1 has failed", true};

TEST(Culprit, IsTheLowestRankWithAReasonOfItsOwn) {
  EXPECT_EQ(Culprit({kFine, kFine}), -1);
  EXPECT_EQ(Culprit({kFine, kMine}), 1);
  EXPECT_EQ(Culprit({kConsequence, kFine, kMine}), 2);
  EXPECT_EQ(Culprit({kFine, kConsequence}), 1);
}

TEST(TellFailure, OneLineForAll) {
  EXPECT_EQ(TellFailure({kMine}), "no such file");
  EXPECT_EQ(TellFailure({kMine, kMine}), "rank 0 of 2: no such file");
  EXPECT_EQ(TellFailure({kConsequence, kMine, kFine}), "rank 1 of 3: no such file");
  EXPECT_EQ(TellFailure({kMine, kOther}), "rank 0 of 2: no such file (1 other rank failed too)");
}

// A list below a headline stays one; no other line end reaches the terminal.
TEST(Outcome, AMessageIsThatOfItsStatus) {
  const Outcome outcome =
      Outcome::From(Error(Code::kMismatch, "ranks differ\n  rank 0: 3\nforged"));
  EXPECT_EQ(outcome.message, "ranks differ\n  rank 0: 3\\nforged");
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_FALSE(outcome.consequence);
  EXPECT_TRUE(Outcome::From(Error(Code::kPeerLost, "gone")).consequence);
}

// Each rank fails in turn: all leave with its exit code, and only it speaks.
TEST(Agreement, AllRanksStopWhenOneFails) {
  std::vector<std::string> told(3);
  const std::vector<Status> statuses = RunRanks(3, Env(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto circle, RankCircle::Create(world));
    Agreement agreement(
        *circle, [&](std::string_view line) { told[static_cast<size_t>(world.rank())] = line; });
    if (!agreement.Reached(Status())) return Error(Code::kInternal, "stopped without a reason");
    const Status mine = world.rank() == 1 ? Error(Code::kNotFound, "no file") : Status();
    if (agreement.Reached(mine)) return Error(Code::kInternal, "went on");
    if (agreement.exit_code() != 3) return Error(Code::kInternal, "{}", agreement.exit_code());
    return world.Shutdown();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(told, (std::vector<std::string>{"", "rank 1 of 3: no file", ""}));
}

TEST(RankCircle, SharesTextsOfAnyLength) {
  const std::vector<Status> statuses = RunRanks(3, Env(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto circle, RankCircle::Create(world));
    const std::string mine(static_cast<size_t>(world.rank()) * 1000, 'x');
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> all, circle->Share(mine));
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank] != std::string(rank * 1000, 'x')) return Error(Code::kInternal, "{}", rank);
    }
    return world.Shutdown();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace npumesh
